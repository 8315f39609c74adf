// What the exchange of a data-parallel group adds to the step of one GPU of a plan.
//
// The blocks that the GPU holds become tasks of a stream, and timeline/gradient_exchange.h adds their messages, as it does for
// `forerun whatif`: how gradients are grouped, how messages share the network, what contention costs and what shows are
// decided there. Replicas (ZeRO 0 and 1) send buckets as the last backward pass fills them; ZeRO 2 scatters the gradients
// of each block in every micro-batch; ZeRO 3 also gathers each block's parameters before its passes, one block ahead.
// Parameter servers run on the nodes.
#pragma once

#include <span>

#include "scale/block.h"
#include "scale/memory_use.h"
#include "scale/network.h"
#include "scale/plan.h"
#include "timeline/gradient_exchange.h"

namespace forerun::scale {

struct ExchangeTimes {
  Nanoseconds exchange;  // all of it
  Nanoseconds exposed;   // what it adds
};

struct ExchangeSetup {
  const Network& network;
  Group group;  // that shares parameters and their gradients out, or adds gradients up
  StateBytes bytes;
  Bytes bucket;
  Group copies{};    // of shards (HSDP), over which gradients are added up behind their reduce-scatter
  double waits = 0;  // of the passes, for other nodes (timeline/sharded_exchange.h)
};

// Of the blocks one GPU holds, in the order of the forward pass.
Result<ExchangeTimes> exchange_of(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup);

// How replicas of a plan exchange their gradients over the links of their group: by which collective or servers, grouped how.
GradientExchange replica_exchange(const Plan& plan, const Network& network, const Group& group);

// Time of a block's passes on one GPU, exchange within the tensor group included.
Nanoseconds forward_of(const Block& block);
Nanoseconds backward_of(const Block& block);

}  // namespace forerun::scale
