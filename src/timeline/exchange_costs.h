// What a message of gradients costs on the links of a cluster: GradientExchanges by all-reduce, by reduce-scatter to the
// owners of shards, or by parameter servers.
//
// Costs are those of cost/collective, of links as collectives find them (link_efficiency.h). A collective holds the
// network from its beginning to its end, its latency too, as one communicator runs one collective after the other; where
// several may be in flight (ByteScheduler's credit), their latencies overlap. Parameter servers (Li et al., 2014; BytePS,
// Jiang et al., 2020): the GPUs of a node add up their gradients first, a node then sends them to the servers and fetches
// the sum; sending and fetching are links of their own, but where a server runs on each node, whose connection then
// carries what it pushes and what its server answers. Latency holds back a message, not the link. Messages to servers
// are gradient by gradient, cut into BytePS's parts.
#pragma once

#include "cost/collective/collective.h"
#include "timeline/gradient_exchange.h"

namespace forerun {

struct AllReduceSetup {
  AllReduce algorithm = AllReduce::fastest;
  Topology topology;
  Nanoseconds per_message{};  // besides the collective: agreeing on it, launching it
  int64_t in_flight = 1;      // collectives under way at a time
  double shrinks_to = 1;      // the bytes that are sent of a gradient's, by compression
};
GradientExchange by_all_reduce(const AllReduceSetup& setup);

// Gradients to the workers that own them (ZeRO): a ring's reduce-scatter over all ranks.
GradientExchange by_reduce_scatter(const Topology& topology, Nanoseconds per_message = {});

// One collective over all ranks that takes `time`, with what it does to computation.
ExchangePart collective_part(Nanoseconds time, const Topology& topology);

inline constexpr Bytes kServerPart(4'096'000);  // BytePS's, ByteScheduler's too

struct ServerSetup {
  Topology topology;    // `between` joins a node and the servers
  int64_t servers = 0;  // 0: one a node
  bool colocated = false;
};
GradientExchange by_servers(const ServerSetup& setup);

}  // namespace forerun
