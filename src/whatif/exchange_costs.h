// What a message of gradients costs on the links of a cluster: GradientExchanges by all-reduce or by parameter servers.
//
// Costs are those of cost/collective. A collective holds the network from its beginning to its end, its latency too, as
// one communicator runs one collective after the other; where several may be in flight (ByteScheduler's credit), their
// latencies overlap. Parameter servers (Li et al., 2014; BytePS, Jiang et al., 2020): the GPUs of a node add up their
// gradients first, a node then sends them to the servers and fetches the sum; sending and fetching are links of their
// own, but where a server runs on each node, whose connection then carries what it pushes and what its server answers.
// Latency holds back a message, not the link.
#pragma once

#include "cost/collective/collective.h"
#include "whatif/gradient_exchange.h"

namespace forerun::whatif {

struct AllReduceSetup {
  AllReduce algorithm = AllReduce::fastest;
  Topology topology;
  Nanoseconds per_message{};  // besides the collective: agreeing on it, launching it
  int64_t in_flight = 1;      // collectives under way at a time
  double shrinks_to = 1;      // the bytes that are sent of a gradient's, by compression
};
GradientExchange by_all_reduce(const AllReduceSetup& setup);

// One collective over all ranks that takes `time`, with what it does to computation.
ExchangePart collective_part(Nanoseconds time, const Topology& topology);

struct ServerSetup {
  Topology topology;    // `between` joins a node and the servers
  int64_t servers = 0;  // 0: one a node
  bool colocated = false;
};
GradientExchange by_servers(const ServerSetup& setup);

}  // namespace forerun::whatif
