// ZeRO: optimizer state (stage 1), gradients (2) and parameters (3) are shared out among the workers.
//
// Source: Rajbhandari et al. (2020). The update shrinks to a worker's share. Stages 1 and 2: gradients are reduced to
// their owners beside the backward pass (by_reduce_scatter), and the updated parameters gathered behind the update. Stage
// 3: parameters are gathered before their use in forward and again before the backward pass; gathering runs ahead of
// computation, one message after the other. A message holds a block's parameters, as FSDP wraps them (Zhao et al., 2023), of stages
// 1 and 2 a bucket as in DDP. Under autocast FSDP casts its shards before it gathers them (`gathered_share`), and adds up gradients in
// float32. Stages 2 and 3 exchange block by block, so that every block waits for the slowest GPU of all nodes, the longer the
// more there are (`waits_for_nodes`). Assumed: what autocast's casts of whole weights take is what FSDP's copies into and out of messages take; the
// update's kernels take less time in proportion.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/collective/collective.h"
#include "graph/training_run.h"
#include "timeline/gradient_exchange.h"

namespace forerun {

struct ShardedTraining {
  int stage = 2;  // 1 to 3
  Topology topology;
  Nanoseconds call;     // of any collective
  double gathered = 1;  // bytes of a parameter that are gathered, over those of its gradient
};

// The bytes of a parameter that a stage gathers, over those of its gradient.
double gathered_share(int stage, Precision precision);
// What waiting for so many nodes adds to the passes, as a share of them. LLM Foundry's runs to look at of one model, GPU and
// micro-batch (data/scale/published_runs.json) on 8 to 512 GPUs take 1.3 % longer, +- 0.1 %, for each doubling of nodes than
// everything else here explains; all ten groups of them do.
double waits_for_nodes(int stage, int64_t nodes);
std::string waits_text();  // for answers that say what they assume

// Which gradients a stage reduces together.
Grouping sharded_grouping(int stage);

// What a ZeRO stage changes besides the reduction of gradients, which `counts` tells of. `carried` as in add_exchange.
void share_out(GraphEdit& edit, const std::vector<BackwardPass>& passes, const ShardedTraining& sharded,
               ExchangeCounts& counts, std::vector<CarriedDependency>& carried);

}  // namespace forerun
