// contended(): communication and computation that run beside one another take longer.
//
// Durations depend on the overlap and the overlap on durations: some rounds of simulating and lengthening settle it. Work
// that proceeds at 1/f of its speed for an overlap o needs o (1 - 1/f) more. Kernels that overlap several messages at once
// are slowed down by each. The constants are those of cost/collective/contention.h. Left out: contention of kernels with
// one another.
#pragma once

#include <span>
#include <string>

#include "timeline/task_graph.h"

namespace forerun {

// A communication task that takes from computation, and computation from it.
struct ContendingTask {
  TaskId task;
  double slowed = 1;   // times as long where the GPU computes all the while
  double traffic = 0;  // of what the GPU's links can carry
};

// The graph with longer durations where communication and computation run beside one another: tasks of communication by
// what they say; kernels of a stream by kComputationSlowdown at full traffic.
TaskGraph contended(const TaskGraph& graph, std::span<const ContendingTask> tasks);

// The rule in words, for answers that say what they assume.
std::string contention_text();

}  // namespace forerun
