// GpuCluster: many GPUs in nodes, and how long a collective of some of them takes.
//
// A node has `node` GPUs joined by `within`; `between` is a node's whole connection to the network, shared fairly by
// the GPUs that use it at the same time. Groups are spaced evenly over the ranks, as Megatron lays them out: tensor
// groups are neighbours, then data, then pipeline. What a group finds is a Topology, whose collectives cost/collective
// times: all-reduce as NCCL's ring or double tree, whichever is faster. Left out: congestion beyond the node's own
// connection, several rails of different speed.
#pragma once

#include <cstdint>

#include "base/quantity.h"
#include "cost/collective/collective.h"
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

// Ranks of the group in one node, of the group that has fewest there where groups do not fill nodes.
int64_t ranks_in_node(const GpuCluster& cluster, const Group& group);

class Network {
 public:
  Network(const GpuCluster& cluster, const Efficiency& efficiency);

  [[nodiscard]] Nanoseconds all_reduce(Bytes bytes, const Group& group) const;
  [[nodiscard]] Nanoseconds reduce_scatter(Bytes bytes, const Group& group) const;  // bytes: of the whole tensor
  [[nodiscard]] Nanoseconds all_gather(Bytes bytes, const Group& group) const;      // the same
  [[nodiscard]] Nanoseconds all_to_all(Bytes bytes, const Group& group) const;      // of what one rank holds
  // From one stage of a pipeline to the next, `stride` ranks away; `split` GPUs of a tensor group send a part each.
  [[nodiscard]] Nanoseconds send(Bytes bytes, int64_t stride, int64_t split) const;

  // The links of a group, as collectives find them: every group with GPUs in the same node uses its connection now.
  [[nodiscard]] Topology topology_of(const Group& group) const;
  [[nodiscard]] Nanoseconds call_of(const Group& group) const;

 private:
  GpuCluster cluster_;
  int64_t node_ = 1;
  Topology links_;  // of the whole cluster
  CollectiveEfficiency efficiency_;
  Nanoseconds hop_;
};

}  // namespace forerun::scale
