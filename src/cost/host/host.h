// Host costs: how long the CPU is busy issuing each op, from data/host/default.json.
//
//   op        = cost of its class + cost of every kernel after the first
//   foreach   = cost of the class + cost of every tensor of the list
//   iteration = constant + cost of every parameter tensor (zero_grad, gradient bookkeeping)
// Python, autograd and dispatch overhead are all in the class's figure. Left out: data loading, the machine's own speed
// (`speed` scales everything), the drift of host speed within minutes.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "cost/op_cost.h"
#include "derive/op_class.h"
#include "graph/graph.h"

namespace forerun {

struct HostConstants {
  std::array<Nanoseconds, kOpClassCount> op;  // by class
  Nanoseconds host_op;                        // an op on tensors in host memory
  Nanoseconds mark;                           // profiler marks
  Nanoseconds further_kernel;
  Nanoseconds foreach_tensor;
  Nanoseconds parameter;
  Nanoseconds iteration;
};

Result<HostConstants> load_host_constants(const std::filesystem::path& file);

struct HostCosts {
  std::vector<Nanoseconds> ops;  // in the graph's order
  Nanoseconds per_iteration;     // besides the ops
  [[nodiscard]] Nanoseconds total() const;
};

// `costs` gives the number of kernels of each op. Parameter tensors are counted by the accumulations of their gradients.
HostCosts host_costs(const Graph& graph, std::span<const OpCost> costs, const HostConstants& constants,
                     double speed = 1.0);

}  // namespace forerun
