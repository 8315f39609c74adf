// How far measurements of the same configuration lie apart: what no predictor can do better than.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "records/data_scan.h"
#include "records/measured_bound.h"

namespace forerun {

enum class NoiseFigure : uint8_t { iteration, gpu_busy, peak_requested, peak_allocated, peak_reserved };
std::string_view name_of(NoiseFigure figure);

struct DataNoise {
  int64_t configurations = 0;
  int64_t repeats = 0;       // records of a configuration that was measured before
  int64_t other_status = 0;  // of them, ones that ran out of memory where the first did not, or the other way round
  // |a - b| / mean(a, b) of every repeat that succeeded, by what bounds the first measurement.
  std::map<std::pair<MeasuredBound, NoiseFigure>, std::vector<double>> differences;
};

// Compares every measured record with the first one of the same configuration.
Result<DataNoise> noise_of_data(const std::vector<std::string>& files,
                                const std::function<void(const DataProblem&)>& problem = {},
                                const WorkControl& control = {});

}  // namespace forerun
