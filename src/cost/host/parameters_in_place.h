// Where the host waits for the GPU within an iteration, and what of its work it matters for then when it is done.
#pragma once

#include "cost/host/host.h"

namespace forerun {

// nonzero() and its like, indexing by a mask among them: how large the result is, only a run tells.
bool chooses_by_value(const Graph& graph, const Op& op);

// Tensor.item() and its like: the host reads a value that the GPU has yet to compute. What chooses by value reads its size.
bool reads_from_gpu(const Graph& graph, const Op& op);

// The same of all ops of a graph: most names do neither, and each is looked at once.
class ValueReads {
 public:
  explicit ValueReads(const Graph& graph) : graph_(graph), may_(graph.names().size(), May::unknown) {}
  bool chooses(const Op& op) { return may(op) && chooses_by_value(graph_, op); }
  bool reads(const Op& op) { return may(op) && reads_from_gpu(graph_, op); }

 private:
  enum class May : uint8_t { unknown, no, yes };
  bool may(const Op& op);

  const Graph& graph_;
  std::vector<May> may_;  // by name
};

// Whether the host waits for the GPU before it has issued all of an iteration.
bool host_waits(const Graph& graph, const LoopRules& rules);

// The same costs with what parameter tensors take where their gradients are accumulated, rather than all of it when the iteration begins.
HostCosts parameters_in_place(const Graph& graph, HostCosts host, const HostConstants& constants, double speed = 1.0);

}  // namespace forerun
