// How far measurements of the same configuration lie apart: what no predictor can do better than.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/data_scan.h"
#include "report/data_noise.h"

namespace forerun {

// Compares every measured record with the first one of the same configuration.
Result<DataNoise> noise_of_data(const std::vector<std::string>& files,
                                const std::function<void(const DataProblem&)>& problem = {});

}  // namespace forerun
