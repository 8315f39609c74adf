// Constant folding: what its two files share. Entry: fold() of rules.h.
#pragma once

#include <optional>
#include <vector>

#include "ingest/onnx/translation.h"

namespace forerun::ingest {

// Elementwise arithmetic, comparisons, casts, Where and reductions of constants; all inputs are known constants.
bool fold_arithmetic(Node& node);

// The shape two constants broadcast to; nothing where they do not, or the result is not small.
std::optional<Shape> broadcast_small(const Shape& a, const Shape& b);

// Where element `flat` of a tensor of shape `out` comes from in one of shape `in` that is broadcast to it.
size_t source_of(size_t flat, const Shape& out, const Shape& in);

// One axis of a Slice, clamped as ONNX says; a negative step walks backwards.
struct Cut {
  int64_t axis, start, end, step, extent;
};

// Nothing where a bound is not known, or after a failure.
std::optional<std::vector<Cut>> cuts_of(Node& node);

// A constant of that type without elements yet.
Constant empty_like(const Constant& like, Shape shape);
void copy_element(const Constant& from, size_t i, Constant& to);

}  // namespace forerun::ingest
