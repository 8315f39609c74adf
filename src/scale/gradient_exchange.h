// How gradients and parameters of a data-parallel group travel beside the computation, and what of it shows.
//
// Two lanes, the GPU's and the network's; each does one thing at a time, in order. Replicas (ZeRO 0 and 1) send buckets
// as the last backward pass fills them; ZeRO 2 scatters gradients in every micro-batch; ZeRO 3 also gathers each
// block's parameters before its passes, as early as the network is free. Parameter servers (network.h) have a lane within
// the nodes and one between them: a bucket is added up in the nodes, pushed, pulled and shared, and the update waits for all.
#pragma once

#include <span>
#include <vector>

#include "scale/block.h"
#include "scale/memory_use.h"
#include "scale/network.h"
#include "scale/plan.h"

namespace forerun::scale {

struct ExchangeTimes {
  Nanoseconds exchange;  // all of it
  Nanoseconds exposed;   // what it adds
};

struct ExchangeSetup {
  const Network& network;
  Group group;
  StateBytes bytes;
  Bytes bucket;
};

// Of the blocks one GPU holds, in the order of the forward pass.
ExchangeTimes exchange_of(std::span<const Block> blocks, const Plan& plan, const ExchangeSetup& setup);

// Time of a block's passes on one GPU, exchange within the tensor group included.
Nanoseconds forward_of(const Block& block);
Nanoseconds backward_of(const Block& block, bool checkpoint);

}  // namespace forerun::scale
