// OpCall: an op that is being taken apart, by its inputs and outputs; for the rules of decompose.cpp and norms.cpp.
#pragma once

#include <span>
#include <vector>

#include "compile/layout_rule.h"
#include "compile/node_builder.h"

namespace forerun::compile {

inline constexpr uint8_t kPlain = kComputedAgain | kFusible;
inline constexpr uint8_t kAlone =
    0;  // elementwise to Inductor, but neither fused nor computed again in the partitioner's eyes
using Outputs = std::vector<ValueId>;
using Reads = std::span<const Read>;

// Inputs and outputs by place.
struct OpCall {
  NodeBuilder& build;
  const Op& op;
  Reads in;

  [[nodiscard]] const Graph& graph() const { return build.graph(); }
  [[nodiscard]] TensorId output(size_t place) const { return graph().outputs(op)[place]; }
  [[nodiscard]] int64_t elements(size_t place) const { return graph().element_count(output(place)); }
  [[nodiscard]] DType dtype(size_t place) const { return graph().tensor(output(place)).dtype; }
  [[nodiscard]] Read all(size_t place) const { return in[place]; }
  [[nodiscard]] std::vector<Read> every() const { return {in.begin(), in.end()}; }
  [[nodiscard]] Read of(ValueId value) const { return {value, build.joint().value(value).elements}; }
};

inline constexpr int64_t kUnrolled = 8;  // elements of a reduction that is written out

// Whether an image, or a sequence, has its channels last.
inline bool has_channels_last(const OpCall& call, TensorId id) {
  if (call.graph().shape(id).size() == 4 && call.build.channels_last()) return true;
  const std::vector<size_t> order = dimension_order(call.graph(), id);
  return !order.empty() && order.back() == 1;
}

}  // namespace forerun::compile
