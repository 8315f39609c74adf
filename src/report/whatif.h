// WhatIfAnswers: what optimizations would bring to an iteration, traced or predicted; as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "api/whatif.h"

namespace forerun {

std::string to_text(const WhatIfAnswer& answer);
std::string to_json(const WhatIfAnswer& answer);                // one line
std::string to_text(const std::vector<WhatIfAnswer>& ranking);  // one line each, the largest gain first

}  // namespace forerun
