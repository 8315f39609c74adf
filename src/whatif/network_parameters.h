// The parameters that every distributed optimization takes: how many GPUs, in what machines, joined by what.
//
//   workers=8             GPUs, one worker each
//   per_node=1            of them in a machine
//   network=10gbe         a machine's connection, as cost/collective/link_name.h reads it (10gbe, 4xhdr, 800Gb/s); or
//                         bandwidth_gbps=10, in 10^9 bits a second and direction, and latency_us=20
//   intra=nvlink          within a machine; without it what the GPU has: NVLink, else PCIe
//   gradients_mb=100      bytes of all gradients, where the trace has no shapes
#pragma once

#include <string_view>
#include <vector>

#include "cost/collective/collective.h"
#include "timeline/gradient_exchange.h"
#include "whatif/optimizations.h"

namespace forerun::whatif {

inline constexpr std::string_view kNetworkKeys[] = {"workers",    "per_node", "network",     "bandwidth_gbps",
                                                    "latency_us", "intra",    "gradients_mb"};

// What joins the workers, as collectives find it (cost/collective/link_efficiency.h).
struct WorkerLinks {
  Topology topology;
  Nanoseconds call;         // of any collective
  std::string text;         // "8 GPUs, 1 a machine, between machines 10 GbE (1.25 GB/s, 30 us)": the lines' own figures
  std::string assumptions;  // "collectives reach 85 % of the network's rate, ..."
};
Result<WorkerLinks> worker_links(const EditableIteration& edited, const Parameters& parameters);
// Which all-reduce; without a parameter the fastest, as NCCL chooses.
Result<AllReduce> algorithm_of(const Parameters& parameters);

// Adds the exchange to the iteration's iterations and says what was assumed, `what` and of the links. Communication that
// is in the trace goes. `also`: what else the optimization changes, before contention is looked at; may be empty.
Status exchange_gradients(EditableIteration& edited, const Parameters& parameters, const GradientExchange& exchange,
                          const WorkerLinks& links, const std::string& what, const AlsoChange& also = {});

// A whole number from 1, or `otherwise`.
Result<int64_t> whole_number(const Parameters& parameters, const std::string& key, int64_t otherwise);
// A number of megabytes (10^6), or `otherwise`.
Result<Bytes> megabytes(const Parameters& parameters, const std::string& key, double otherwise);

}  // namespace forerun::whatif
