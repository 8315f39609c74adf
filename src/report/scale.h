// A ScaleAnswer: the step of many GPUs as text, JSON and a picture of throughput over the number of GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/mixed_scale.h"

namespace forerun {

// At most `most` plans of a search.
std::string to_text(const ScaleAnswer& answer, size_t rows = 10);
std::string to_json(const ScaleAnswer& answer);
std::string to_svg(const ScaleAnswer& answer);
// The picture of an answer that has one, for a trace viewer and as a drawing.
std::string step_trace(const ScaleAnswer& answer);
std::string step_svg(const ScaleAnswer& answer);

// The step of a cluster of several kinds of GPU, and what each kind does in it.
std::string to_text(const MixedAnswer& answer);
std::string to_json(const MixedAnswer& answer);

}  // namespace forerun
