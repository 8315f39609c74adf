#include "lab/papers/neusight/shape_text.h"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <utility>

namespace forerun {
namespace {

constexpr int64_t kLargestShapeExtent = int64_t{1} << 40;

}  // namespace

std::optional<std::vector<Shape>> shapes_in(std::string_view text) {
  std::vector<Shape> shapes;
  Shape shape;
  for (size_t i = 0; i < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) != 0) {
      int64_t extent = 0;
      const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), extent);
      if (error != std::errc() || extent > kLargestShapeExtent) return std::nullopt;
      shape.push_back(extent);
      i = static_cast<size_t>(end - text.data());
      continue;
    }
    const bool closes = text[i] == ']' || text[i] == ')';
    if (closes && !shape.empty()) shapes.push_back(std::exchange(shape, {}));
    ++i;
  }
  return shapes;
}

}  // namespace forerun
