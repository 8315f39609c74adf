// Lowering: runs a forward graph through the tracer, op by op, as PyTorch would dispatch it.
#pragma once

#include <string_view>
#include <vector>

#include "derive/autocast.h"
#include "derive/dispatch.h"

namespace forerun::derive {

// What the lowering of one op sees.
struct OpCall {
  Tracer& tracer;
  Autocast& autocast;
  const DispatchTarget& target;
  std::string_view name;
  const Values& inputs;
  const Attributes& attributes;
  std::vector<std::pair<Shape, DType>> results;  // as the forward graph states them

  [[nodiscard]] const Value& in(size_t i) const { return inputs[i]; }
  [[nodiscard]] Value optional(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
};

// The names of the forward ops that have a rule of their own, in the order of the list.
std::vector<std::string_view> lowered_ops();

// The results of the op, in order; in-place ops return their first input.
Values lower(const OpCall& call);

}  // namespace forerun::derive
