// The tasks of a predicted iteration on the GPU's stream, and when each parameter's gradient is ready.
//
// One task per op that has kernels, in program order, behind a mark; an op keeps the stream for its duration and the
// gaps between its kernels. A gradient is a storage that backward ops write and that outlives the iteration; it is ready
// when the last of them has ended, and its parameter is first used by the forward op whose sequence number the op that
// created it carries. Left out: the host, which must be able to run ahead (host_gpu_timeline.h tells whether it is).
#pragma once

#include <span>
#include <vector>

#include "cost/op_cost.h"
#include "graph/graph.h"
#include "timeline/task_graph.h"

namespace forerun {

// A parameter's gradient, by the ops of an iteration.
struct OpGradient {
  size_t first = 0, last = 0;  // backward ops that create and complete it
  size_t used = 0;             // the first forward op that reads the parameter; 0 where that is not known
  Bytes bytes;
};
std::vector<OpGradient> op_gradients(const Graph& graph);  // in the order they are complete

struct ModelGradient {
  TaskId ready;  // the task whose end completes it
  TaskId used;   // the first forward task that reads the parameter
  Bytes bytes;
};

struct ModelTasks {
  TaskGraph tasks;
  TaskId beginning;                      // the mark
  std::vector<ModelGradient> gradients;  // in the order they are ready
};

// `gap`: between two kernels.
Result<ModelTasks> model_tasks(const Graph& graph, std::span<const OpCost> costs, Nanoseconds gap);

}  // namespace forerun
