// Which linear layers get low-rank adapters.
//
// An adapter of rank r beside a layer y = x W adds (dropout(x) A) B * scale to its result, with A of [r, in] and B of [out, r];
// the layer's own weight is frozen. As the peft library has it: the weights of adapters are float32 whatever the model's are.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun::derive {

// Of LoraSpec::targets, alone: every linear layer but the last of the model.
inline constexpr std::string_view kAllLinear = "all-linear";

// With a weight of its own: products of two activations are none.
struct LinearLayer {
  std::string module;
  int64_t in = 0, out = 0;
  size_t operand = 0;  // of the op: which input the layer is applied to; its weight is the next
};

// "q_proj" of "model.layers.0.self_attn.q_proj"
std::string_view last_part(std::string_view module);

// By op of the forward graph.
std::map<size_t, LinearLayer> linear_layers(const Graph& forward);

// Linear layers that the spec names, by op of the forward graph. Where it names none, those of queries and values. An Error where
// there are no such layers; it lists those there are.
Result<std::map<size_t, LinearLayer>> adapted_layers(const Graph& forward, const LoraSpec& spec);

}  // namespace forerun::derive
