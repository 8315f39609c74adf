// What collectives and computation take from one another where a GPU does both: constants, and how much of the GPU's
// links a collective uses.
//
// Lee et al. (2025, "Characterizing Compute-Communication Overlap"): on A100, H100, MI210 and MI250 computation beside
// collectives was 18.9 % slower on the average. Daydream (Zhu et al., 2020): collectives of NCCL beside computation took
// 34 % longer on the average, on machines of four RTX 2080 Ti. Both hold where a collective uses all that the GPU's own
// links carry; one that waits for a slower network takes less in proportion. timeline/contention.h applies them.
#pragma once

#include <algorithm>

#include "cost/collective/collective.h"

namespace forerun {

inline constexpr double kComputationSlowdown = 1.189, kCollectiveSlowdown = 1.34;

// How much of what the links within a node carry a transfer at a level of the topology takes.
inline double traffic_of(const Topology& topology, Level level) {
  if (level == Level::within) return 1;
  return topology.within.bandwidth > 0 ? std::min(1.0, topology.between.bandwidth / topology.within.bandwidth) : 0;
}

// How many times as long a collective of that traffic takes beside computation.
inline double collective_slowdown(double traffic) { return std::max(1.0, kCollectiveSlowdown * traffic); }

}  // namespace forerun
