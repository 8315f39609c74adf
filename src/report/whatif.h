// WhatIfAnswers: what optimizations would bring to an iteration, traced or predicted; as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "api/whatif.h"

namespace forerun {

// "amp + fused_adam"; "nothing".
std::string applied_text(const std::vector<std::string>& applied);
// What all of them assume, in the first one's order. There must be one.
std::vector<std::string> shared_assumptions(const std::vector<WhatIfAnswer>& answers);

std::string to_text(const WhatIfAnswer& answer);
std::string to_json(const WhatIfAnswer& answer);                // one line
std::string to_text(const std::vector<WhatIfAnswer>& ranking);  // one line each, the largest gain first

}  // namespace forerun
