// A monitor's Recording as text, as a picture and as a `resources/1` record (docs/distributed.md).
#pragma once

#include <string>

#include "monitor/recording.h"

namespace forerun {

std::string to_text(const monitor::Recording& recording);
std::string to_json(const monitor::Recording& recording);  // one line
std::string to_svg(const monitor::Recording& recording);

}  // namespace forerun
