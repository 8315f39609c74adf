// Replicas of a model that goes by its graph, gradient by gradient: what an iteration takes with its exchange.
//
// The iteration's ops are tasks of a host thread and a stream (timeline/model_tasks.h), the very ones that `forerun whatif`
// edits, and the exchange is that of timeline/gradient_exchange.h: in PyTorch's buckets, all in one (bulk-synchronous), one each
// (wait-free), merged (MG-WFBP), or cut and sent in the order the next forward pass needs them (ByteScheduler), by
// all-reduce or parameter servers; or shared out by ZeRO (timeline/sharded_exchange.h).
#pragma once

#include "scale/efficiency.h"
#include "scale/network.h"
#include "scale/plan.h"
#include "timeline/model_tasks.h"

namespace forerun::scale {

struct ReplicaTimes {
  Nanoseconds iteration;  // with its exchange
  Nanoseconds exchange;   // that the busiest part of the network is used for
};

// `plan` has one stage; with ZeRO 2 and 3 one micro-batch. `gathered`: bytes of a parameter that ZeRO gathers, over those of its
// gradient.
Result<ReplicaTimes> replica_times(const ModelTasks& model, const Plan& plan, const GpuCluster& cluster,
                                   const Efficiency& efficiency, double gathered = 1);

}  // namespace forerun::scale
