// A FitAnswer as text and JSON.
#pragma once

#include <string>

#include "api/fit.h"
#include "report/text_style.h"

namespace forerun {

std::string to_text(const FitAnswer& answer, const TextStyle& style = {});
std::string to_json(const FitAnswer& answer);  // one line

}  // namespace forerun
