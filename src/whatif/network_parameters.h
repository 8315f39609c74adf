// The parameters that every distributed optimization takes: how many GPUs, in what machines, joined by what.
//
//   workers=8             GPUs, one worker each
//   per_node=1            of them in a machine
//   network=10gbe         between machines, by its name in data/devices/links.json; or bandwidth_gbps=10, in 10^9 bits a
//                         second and direction, and latency_us=20
//   intra=nvlink          within a machine; without it what the GPU has: NVLink, else PCIe
//   gradients_mb=100      bytes of all gradients, where the trace has no shapes
#pragma once

#include <string_view>
#include <vector>

#include "cost/collective/collective.h"
#include "whatif/gradient_exchange.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {

inline constexpr std::string_view kNetworkKeys[] = {"workers",    "per_node", "network",     "bandwidth_gbps",
                                                    "latency_us", "intra",    "gradients_mb"};

Result<Topology> topology_of(const EditableIteration& edited, const Parameters& parameters);
Result<AllReduce> algorithm_of(const Parameters& parameters);
// "8 GPUs, 1 a machine, over 10 GbE (1.25 GB/s, 30 us)"
std::string describe(const Topology& topology);

// Adds the exchange to the iteration's iterations and says what was assumed. Communication that is in the trace goes.
Status exchange_gradients(EditableIteration& edited, const Parameters& parameters, const GradientExchange& exchange,
                          const std::string& what);

// A whole number from 1, or `otherwise`.
Result<int64_t> whole_number(const Parameters& parameters, const std::string& key, int64_t otherwise);
// A number of megabytes (10^6), or `otherwise`.
Result<Bytes> megabytes(const Parameters& parameters, const std::string& key, double otherwise);

}  // namespace forerun::whatif
