// WhatIfSweepAnswers: optimizations over the values of a parameter; as text, JSON, CSV and SVG.
#pragma once

#include <string>

#include "api/whatif.h"

namespace forerun {

std::string to_text(const WhatIfSweepAnswer& answer);
std::string to_json(const WhatIfSweepAnswer& answer);  // one object
std::string to_csv(const WhatIfSweepAnswer& answer);   // a row for each value and curve
std::string to_svg(const WhatIfSweepAnswer& answer);   // iteration time over the values, a curve for each

}  // namespace forerun
