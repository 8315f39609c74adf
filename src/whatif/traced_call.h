// TracedCall: one outermost op of a traced forward pass, told to a ForwardBuilder in its own vocabulary.
//
// A profiler records the calls that a model's source code makes (aten::linear, aten::batch_norm) with the shapes of their
// tensors and the values of their scalars, which is what a forward graph is made of. Results are not recorded: the builder
// infers their shapes. An op that is not in the vocabulary becomes an opaque one whose result is like its first tensor.
#pragma once

#include <vector>

#include "graph/forward_builder.h"
#include "whatif/traced_op.h"

namespace forerun::whatif {

struct TracedCall {
  TracedOp op;
  std::vector<std::vector<TensorId>> tensors;  // by argument: none, one, or those of a list
  // Where the graph is for another batch than the traced one: sizes that a call names grow with it.
  int64_t batch = 0;  // as traced
  double factor = 1;
  std::optional<std::vector<int64_t>> told;  // the shape of the result, as traced, where a later call tells it

  [[nodiscard]] bool has(size_t argument) const { return argument < tensors.size() && !tensors[argument].empty(); }
  // The argument's tensor; where a broken file lacks it, any other, so that the builder finds shapes that do not fit.
  [[nodiscard]] TensorId in(size_t argument) const;
  [[nodiscard]] std::optional<TensorId> optional(size_t argument) const {
    return has(argument) ? std::optional(in(argument)) : std::nullopt;
  }
};

// Which arguments of the op are a module's parameters, and which its buffers.
enum class ArgumentRole : uint8_t { value, parameter, buffer };
ArgumentRole role_of(const std::string& op, size_t argument);

// Ops whose result's shape the vocabulary does not know.
bool result_unknown(const std::string& op);
// Ops that make something new of a tensor's shape or type alone: what they give depends on no parameter.
bool makes_constant(const std::string& op);

// The results of the call, in order; nothing where the op could not be told (the builder then has an error, or the call
// makes nothing that is followed here).
std::vector<TensorId> emit_call(ForwardBuilder& builder, const TracedCall& call);

// Ops that return their first tensor, changed.
bool in_place(const std::string& op);

}  // namespace forerun::whatif
