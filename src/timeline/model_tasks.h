// The tasks of a predicted iteration, and when each parameter's gradient is ready.
//
// One task of the GPU's stream per op that has kernels, in program order, behind a mark; an op keeps the stream for its
// duration and the gaps between its kernels. With host times one thread issues the ops in the same order, as
// host_gpu_timeline.h has it; without, the host is taken to run ahead. A gradient is a storage that backward ops write
// and that outlives the iteration; it is ready when the last of them has ended, and its parameter is first used by the
// forward op whose sequence number the op that created it carries. A compiled backward pass hands over gradients where its graph ends:
// DDP has torch.compile cut graphs at its buckets (DDPOptimizer), so that those of a bucket are ready once the last of them is
// written. What fusion across the cuts would have saved is left out.
#pragma once

#include <span>
#include <vector>

#include "cost/host/host.h"
#include "cost/op_cost.h"
#include "graph/graph.h"
#include "graph/training_run.h"
#include "timeline/gradient_exchange.h"
#include "timeline/task_graph.h"

namespace forerun {

// A parameter's gradient, by the ops of an iteration.
struct OpGradient {
  size_t first = 0, last = 0;  // backward ops that create and complete it
  size_t used = 0;             // the first forward op that reads the parameter; 0 where that is not known
  Bytes bytes;
};
// In the order they are complete. `compiled`: of a graph that was compiled; null: an eager one.
std::vector<OpGradient> op_gradients(const Graph& graph, const CompiledParts* compiled = nullptr);

struct ModelTasks {
  TaskGraph tasks;
  TaskId beginning;                     // the mark
  std::vector<TaskGradient> gradients;  // in the order they are ready
};

struct ModelTaskOptions {
  Nanoseconds gap{};                        // between two kernels
  const HostCosts* host = nullptr;          // null: nobody waits for the host
  LoopRules rules{};                        // with host times: where the loop waits
  const CompiledParts* compiled = nullptr;  // of a graph that was compiled; null: an eager one
  std::span<const uint32_t> calls;  // by op, of the forward pass: op_instance of its tasks; empty: none is known
};
// Tasks name their op by its index in `event`.
Result<ModelTasks> model_tasks(const Graph& graph, std::span<const OpCost> costs, const ModelTaskOptions& options);

}  // namespace forerun
