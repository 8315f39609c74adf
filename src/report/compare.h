// GPUs side by side (api/compare.h) as text, JSON, CSV and a picture.
#pragma once

#include <string>

#include "api/compare.h"

namespace forerun {

std::string to_text(const CompareAnswer& answer);
std::string to_json(const CompareAnswer& answer);  // one line
std::string to_csv(const CompareAnswer& answer);   // the heading first; GPUs that could not be predicted have no row
// Iteration times as bars with their ranges, the fastest on top.
std::string to_svg(const CompareAnswer& answer);

}  // namespace forerun
