// Shapes as NeuSight's tables write them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/attribute.h"

namespace forerun {

// "[[8, 16], [16]]" and "(8, 16)": the innermost lists of numbers. Nothing where a number is none or too large.
std::optional<std::vector<Shape>> shapes_in(std::string_view text);

}  // namespace forerun
