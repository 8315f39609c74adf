// Costs of collective communication in the alpha-beta model: a step over a link takes latency + bytes / bandwidth.
//
// Ring and tree after Thakur, Rabenseifner and Gropp (2005) and Paleo (2017); the double tree after Sanders et al.
// (2009) as NCCL uses it; the hierarchical form is reduce-scatter in the node, all-reduce between nodes, all-gather in
// the node; BlueConnect (Cho et al., 2019) is the same as stages that run on links of their own, so that messages follow
// one another as in a pipeline; the parameter server moves a shard per server, and the busiest link decides. A ring over
// several nodes crosses each node's link once in each direction; of its steps as many wait for the network as there are
// nodes, the others for a link in the node (as NCCL's own tuning counts them). `bytes` is the size of the whole tensor
// on one rank (for all-gather and reduce-scatter: of the full, not the scattered, tensor). Arithmetic on the way is
// free; links are full duplex and not shared with other traffic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "device/device.h"

namespace forerun {

// fastest: the best of ring and double tree for the size, as NCCL chooses.
enum class AllReduce : uint8_t { ring, tree, double_tree, hierarchical, blueconnect, fastest };
std::string_view name_of(AllReduce algorithm);
std::optional<AllReduce> all_reduce_named(std::string_view name);
std::vector<std::string> all_reduce_names();

// Ranks below 2 cost nothing. Ranks and bytes must not be negative. On a single link the two-level forms are the ring.
Nanoseconds all_reduce(AllReduce algorithm, Bytes bytes, int64_t ranks, const Link& link);
Nanoseconds ring_all_reduce(Bytes bytes, int64_t ranks, const Link& link);         // 2(n-1)a + 2(n-1)/n b/B
Nanoseconds tree_all_reduce(Bytes bytes, int64_t ranks, const Link& link);         // 2 ceil(log2 n)(a + b/B)
Nanoseconds double_tree_all_reduce(Bytes bytes, int64_t ranks, const Link& link);  // 2 ceil(log2 n) a + 2 b/B
double ring_volume(double bytes, int64_t ranks);                           // of those: 2(n-1)/n b, over each link
Nanoseconds reduce_scatter(Bytes bytes, int64_t ranks, const Link& link);  // (n-1)a + (n-1)/n b/B
Nanoseconds all_gather(Bytes bytes, int64_t ranks, const Link& link);      // the same
Nanoseconds all_to_all(Bytes bytes, int64_t ranks, const Link& link);      // the same
Nanoseconds broadcast(Bytes bytes, int64_t ranks, const Link& link);       // ceil(log2 n)(a + b/B)

struct Topology {
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;
  Link within;   // between ranks of a node
  Link between;  // of a node to the network
};
inline int64_t ranks_of(const Topology& topology) { return topology.nodes * topology.ranks_per_node; }
Nanoseconds hierarchical_all_reduce(Bytes bytes, const Topology& topology);

// The same collectives over all ranks of a topology.
Nanoseconds all_reduce(AllReduce algorithm, Bytes bytes, const Topology& topology);
Nanoseconds reduce_scatter(Bytes bytes, const Topology& topology);  // as a ring
Nanoseconds all_gather(Bytes bytes, const Topology& topology);      // as a ring
Nanoseconds all_to_all(Bytes bytes, const Topology& topology);      // each rank a share for each other
Nanoseconds broadcast(Bytes bytes, const Topology& topology);       // a tree between nodes, then one within
// One message from a rank to another.
Nanoseconds point_to_point(Bytes bytes, const Link& link);  // a + b/B

// A collective in the parts that occupy different links, one after the other; the next message may use a link as soon
// as this one has left it. All but BlueConnect is one stage, on the slowest link.
enum class Level : uint8_t { within, between };
struct CollectiveStage {
  Level level = Level::between;
  Nanoseconds time;
};
std::vector<CollectiveStage> all_reduce_stages(AllReduce algorithm, Bytes bytes, const Topology& topology);

// What a message costs before it moves: ranks agree that all have it (a gather and a broadcast over a tree), as Horovod
// does for each message. Nothing of it grows with the bytes.
Nanoseconds negotiation(const Topology& topology);

// Workers send their gradients to servers that hold a shard each, and fetch the parameters back.
struct ParameterServers {
  int64_t workers = 1;
  int64_t servers = 1;
  Link link;               // of each machine to the network
  bool colocated = false;  // a server on each worker's machine: its own shard does not cross the network
};
Nanoseconds parameter_push(Bytes bytes, const ParameterServers& setup);  // a + max(1, workers/servers) b/B
Nanoseconds parameter_pull(Bytes bytes, const ParameterServers& setup);  // the same
Nanoseconds parameter_exchange(Bytes bytes, const ParameterServers& setup);

}  // namespace forerun
