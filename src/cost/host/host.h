// Host costs: how long the CPU is busy issuing each op, from data/host/default.json.
//
//   op        = cost of its class in its phase + cost of every kernel after the first
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
  std::array<std::array<Nanoseconds, kOpClassCount>, 3> op;  // by phase and class: autograd makes forward ops dearer
  Nanoseconds host_op;                                       // an op on tensors in host memory
  Nanoseconds mark;                                          // profiler marks
  Nanoseconds further_kernel;
  Nanoseconds foreach_tensor;
  Nanoseconds parameter;
  Nanoseconds iteration;

  [[nodiscard]] Nanoseconds& of(Phase phase, OpClass cls) {
    return op[static_cast<size_t>(phase)][static_cast<size_t>(cls)];
  }
  [[nodiscard]] Nanoseconds of(Phase phase, OpClass cls) const {
    return op[static_cast<size_t>(phase)][static_cast<size_t>(cls)];
  }
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
