// What `forerun check` found: guards and rules, before and now.
#pragma once

#include <string>

#include "guard/judgement.h"
#include "report/text_style.h"

namespace forerun {

std::string to_text(const guard::CheckAnswer& answer, const TextStyle& style = {});
std::string to_markdown(const guard::CheckAnswer& answer);  // for a comment in a review
std::string to_json(const guard::CheckAnswer& answer);      // one line; has the text too

}  // namespace forerun
