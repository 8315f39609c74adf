// Costs of collective communication in the alpha-beta model: a step over a link takes latency + bytes / bandwidth.
//
// Ring and tree after Thakur, Rabenseifner and Gropp (2005) and Paleo (2017); the double tree after Sanders et al.
// (2009) as NCCL uses it; the hierarchical form is reduce-scatter in the node, all-reduce between nodes, all-gather in
// the node; the parameter server moves a shard per server, and the busiest link decides. `bytes` is the size of the
// whole tensor on one rank (for all-gather and reduce-scatter: of the full, not the scattered, tensor). Arithmetic on
// the way is free; links are full duplex and not shared with other traffic.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/quantity.h"
#include "device/device.h"

namespace forerun {

enum class AllReduce : uint8_t { ring, tree, double_tree };
std::string_view name_of(AllReduce algorithm);

// Ranks below 2 cost nothing. Ranks and bytes must not be negative.
Nanoseconds all_reduce(AllReduce algorithm, Bytes bytes, int64_t ranks, const Link& link);
Nanoseconds ring_all_reduce(Bytes bytes, int64_t ranks, const Link& link);         // 2(n-1)a + 2(n-1)/n b/B
Nanoseconds tree_all_reduce(Bytes bytes, int64_t ranks, const Link& link);         // 2 ceil(log2 n)(a + b/B)
Nanoseconds double_tree_all_reduce(Bytes bytes, int64_t ranks, const Link& link);  // 2 ceil(log2 n) a + 2 b/B
Nanoseconds reduce_scatter(Bytes bytes, int64_t ranks, const Link& link);          // (n-1)a + (n-1)/n b/B
Nanoseconds all_gather(Bytes bytes, int64_t ranks, const Link& link);              // the same
Nanoseconds all_to_all(Bytes bytes, int64_t ranks, const Link& link);              // the same
Nanoseconds broadcast(Bytes bytes, int64_t ranks, const Link& link);               // ceil(log2 n)(a + b/B)

struct Topology {
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;
  Link within;   // between ranks of a node
  Link between;  // of a node to the network
};
Nanoseconds hierarchical_all_reduce(Bytes bytes, const Topology& topology);

// Workers send their gradients to servers that hold a shard each, and fetch the parameters back.
struct ParameterServers {
  int64_t workers = 1;
  int64_t servers = 1;
  Link link;  // of each machine to the network
};
Nanoseconds parameter_push(Bytes bytes, const ParameterServers& setup);  // a + max(1, workers/servers) b/B
Nanoseconds parameter_pull(Bytes bytes, const ParameterServers& setup);  // the same
Nanoseconds parameter_exchange(Bytes bytes, const ParameterServers& setup);

}  // namespace forerun
