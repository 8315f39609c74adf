// A FitAnswer as text and JSON.
#pragma once

#include <string>

#include "api/fit.h"

namespace forerun {

std::string to_text(const FitAnswer& answer);
std::string to_json(const FitAnswer& answer);  // one line

}  // namespace forerun
