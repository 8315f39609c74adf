// GpuCluster: many GPUs in nodes, and how long a collective of some of them takes.
//
// A node has `node` GPUs joined by `within`; `between` is a node's whole connection to the network, shared fairly by
// the GPUs that use it at the same time. Groups are spaced evenly over the ranks, as Megatron lays them out: tensor
// groups are neighbours, then data, then pipeline. All-reduce runs as NCCL's ring or double tree, whichever is faster,
// and the slowest link decides. Left out: congestion beyond the node's own connection, several rails of different
// speed.
#pragma once

#include <cstdint>

#include "base/quantity.h"
#include "device/device.h"
#include "scale/efficiency.h"

namespace forerun::scale {

struct GpuCluster {
  Device gpu;
  int64_t gpus = 1;
  int64_t node = 8;
  Link within;
  Link between;
};

struct Group {
  int64_t ranks = 1;
  int64_t stride = 1;  // from one rank of the group to the next
};

// Ranks of the group in one node.
int64_t ranks_in_node(const GpuCluster& cluster, const Group& group);

// Parameter servers (Li et al., 2014), used as BytePS does (Jiang et al., 2020): the GPUs of a node add up their gradients
// first, a node then sends the sum to the servers, each of which holds a shard, fetches the result, and its GPUs share it.
// A server uses the connection of the node it runs on; what a node has to say to its own server stays inside.
struct ServerExchange {
  Nanoseconds reduce;  // within the nodes
  Nanoseconds push;    // between them
  Nanoseconds pull;    // between them
  Nanoseconds gather;  // within the nodes
  // Answers of a node's server leave by the same connection as what its GPUs push.
  [[nodiscard]] Nanoseconds between() const { return push + pull; }
  [[nodiscard]] Nanoseconds within() const { return reduce + gather; }
  [[nodiscard]] Nanoseconds total() const { return within() + between(); }
};

class Network {
 public:
  Network(const GpuCluster& cluster, const Efficiency& efficiency);

  [[nodiscard]] Nanoseconds all_reduce(Bytes bytes, const Group& group) const;
  [[nodiscard]] Nanoseconds reduce_scatter(Bytes bytes, const Group& group) const;  // bytes: of the whole tensor
  [[nodiscard]] Nanoseconds all_gather(Bytes bytes, const Group& group) const;      // the same
  // From one stage of a pipeline to the next, `stride` ranks away; `split` GPUs of a tensor group send a part each.
  [[nodiscard]] Nanoseconds send(Bytes bytes, int64_t stride, int64_t split) const;
  // Gradients of all GPUs to `servers` that run on the nodes, and parameters back.
  [[nodiscard]] ServerExchange by_servers(Bytes bytes, int64_t servers) const;

 private:
  [[nodiscard]] Link link_of(const Group& group) const;
  [[nodiscard]] Nanoseconds call_of(const Group& group) const;

  int64_t gpus_ = 1;
  int64_t node_ = 1;
  Link within_;
  Link between_;
  Nanoseconds within_call_;
  Nanoseconds between_call_;
  Nanoseconds hop_;
};

}  // namespace forerun::scale
