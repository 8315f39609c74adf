// Kernels and their launches: what optimizations need to add, shorten or drop both together.
#pragma once

#include <string>

#include "timeline/graph_edit.h"

namespace forerun::whatif {

// The call that launches a kernel; invalid where the graph has none.
TaskId launch_of(const TaskGraph& graph, TaskId kernel);

// What an op of one small kernel costs the host: the middle one of those in the graph.
Nanoseconds usual_host_op(const TaskGraph& graph);

// A kernel next to another, launched by a host task next to the other's launch.
enum class Side : uint8_t { before, after };
TaskId insert_kernel(GraphEdit& edit, TaskId neighbour, Side side, const std::string& name, Nanoseconds duration,
                     Nanoseconds host);

// Takes kernels out, and the host time of launching them.
void remove_kernels(GraphEdit& edit, std::span<const TaskId> kernels);

}  // namespace forerun::whatif
