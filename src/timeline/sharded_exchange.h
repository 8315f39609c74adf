// ZeRO: optimizer state (stage 1), gradients (2) and parameters (3) are shared out among the workers.
//
// Source: Rajbhandari et al. (2020). The update shrinks to a worker's share. Stages 1 and 2: gradients are reduced to
// their owners beside the backward pass (by_reduce_scatter), and the updated parameters gathered behind the update. Stage
// 3: parameters are gathered before their use in forward and again before the backward pass: 3/2 of the bytes of an
// all-reduce; gathering runs ahead of computation, one message after the other. Assumed: buckets as in DDP; the update's
// kernels take less time in proportion.
#pragma once

#include <vector>

#include "cost/collective/collective.h"
#include "timeline/gradient_exchange.h"

namespace forerun {

struct ShardedTraining {
  int stage = 2;  // 1 to 3
  Topology topology;
  Nanoseconds call;  // of any collective
};

// What a ZeRO stage changes besides the reduction of gradients, which `counts` tells of. `carried` as in add_exchange.
void share_out(GraphEdit& edit, const std::vector<BackwardPass>& passes, const ShardedTraining& sharded,
               ExchangeCounts& counts, std::vector<CarriedDependency>& carried);

}  // namespace forerun
