// The ops of a record captured without a GPU that stand for a choice the device makes, and what CUDA runs for them.
//
// docs/records.md lists them: batch norm, attention, recurrent layers, products with weights of 4 bits. Each rule checks the operands as the record gives
// them (anyone may have written it) and then calls the function that derivation calls, derive/aten.h.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "derive/dispatch.h"
#include "derive/tracer.h"

namespace forerun::derive {

// What is known of the backward op that belongs to a forward one.
struct GenericBackward {
  const Attributes& attributes;
  size_t output_count;
};

struct GenericCall {
  Tracer& tracer;
  const DispatchTarget& target;
  const Values& inputs;
  const Attributes& attributes;
  std::optional<GenericBackward> backward;  // absent: no gradient was taken
  bool parameter_second = false;            // the second input is a parameter of the model
};

struct GenericForm {
  Values results;  // by output of the generic op; null where nothing but its backward op reads it
  std::vector<std::shared_ptr<Value>> gradients;  // by output of the backward op; filled by the backward pass
};

struct GenericRule {
  std::string_view forward;
  std::string_view backward;  // empty: an op of a library that hides what it runs, from a capture on a GPU as well
  Result<GenericForm> (*form)(const GenericCall& call);
  // By leading input of the backward op: which result it is the gradient of.
  Result<std::vector<size_t>> (*seeds)(const Attributes& backward);
};

// The size of cuDNN's reserve where an op has one (a recurrent layer, trained) but was captured on tensors without data,
// which leave it empty: output 3 of aten._cudnn_rnn.default.
std::optional<Bytes> missing_reserve(const Graph& graph, const Op& op);

// The rule of a forward or backward op; null for an op that CUDA runs as it stands.
const GenericRule* generic_rule(std::string_view op_name);

}  // namespace forerun::derive
