// What collectives reach of their links: a share of the line rate, a wait in every step, a cost of every call.
//
// One set of constants for every verb that moves gradients (whatif, scale, schedule): NCCL's, fitted to measured
// all-reduces and kept in data/scale with their source (lab/calibrate/efficiency_regression.h). `reached` turns links as their
// standards have them into links as collectives find them; all costs of cost/collective are asked of the latter. Left
// out: that the share depends on the size of a message.
#pragma once

#include "base/result.h"
#include "cost/collective/collective.h"

namespace forerun {

class JsonObject;

// NCCL over one kind of link: call + steps x step + bytes / (share x bandwidth), for a ring.
struct LinkEfficiency {
  double call_us = 0;  // of any collective
  double step_us = 0;  // of each step of the ring; 0: the link's own latency
  double share = 1;    // of the link's bandwidth
};

struct CollectiveEfficiency {
  LinkEfficiency within;   // links between the GPUs of a node
  LinkEfficiency between;  // a node's connection to the network
};

// Links by their line rates -> links as collectives find them.
Topology reached(const Topology& line, const CollectiveEfficiency& efficiency);
// What a collective over all ranks costs besides its steps and bytes.
Nanoseconds call_of(const Topology& topology, const CollectiveEfficiency& efficiency);

// The constants that are in force unless a question names others, below the data folder.
inline constexpr const char* kCollectiveEfficiencyFile = "scale/a100_megatron.json";
// `within` and `between` of such a file.
CollectiveEfficiency read_collective_efficiency(JsonObject& file);
// Those of kCollectiveEfficiencyFile in the data folder.
Result<CollectiveEfficiency> usual_collective_efficiency();

}  // namespace forerun
