// Replicas of a model that goes by its graph, gradient by gradient: what an iteration takes with its exchange.
//
// The iteration's ops become tasks (timeline/model_tasks.h) and whatif's gradient exchange adds the messages: all in one
// (bulk-synchronous), one each (wait-free), in PyTorch's buckets, merged (MG-WFBP), or cut and sent in the order the next
// forward pass needs them (ByteScheduler), by all-reduce or parameter servers. Times are scaled to the given iteration of
// one GPU, so that what the host costs is in them.
#pragma once

#include <span>

#include "cost/op_cost.h"
#include "graph/graph.h"
#include "scale/efficiency.h"
#include "scale/network.h"
#include "scale/plan.h"

namespace forerun::scale {

struct ReplicaTimes {
  Nanoseconds alone;      // an iteration without exchange
  Nanoseconds iteration;  // with it
  Nanoseconds exchange;   // that the busiest part of the network is used for
};

// `plan` has one stage and whole layers. `single`: the iteration of one GPU.
Result<ReplicaTimes> replica_times(const Graph& graph, std::span<const OpCost> costs, Nanoseconds single,
                                   const Plan& plan, const GpuCluster& cluster, const Efficiency& efficiency);

}  // namespace forerun::scale
