// DataNoise as text and JSON.
#pragma once

#include <string>

#include "records/data_noise.h"

namespace forerun {

std::string to_text(const DataNoise& noise);
std::string to_json(const DataNoise& noise);  // one line

}  // namespace forerun
