#include "scale/network.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace forerun::scale {

// Groups lie one behind the other: those that do not fill nodes lie across their ends, the worst with what is left over.
int64_t ranks_in_node(const GpuCluster& cluster, const Group& group) {
  if (cluster.gpus <= cluster.node) return group.ranks;
  const int64_t stride = std::max<int64_t>(group.stride, 1);
  return cluster.node % stride == 0 ? std::gcd(cluster.node / stride, group.ranks) : 1;
}

Network::Network(const GpuCluster& cluster, const Efficiency& efficiency)
    : cluster_(cluster),
      node_(std::min(cluster.node, cluster.gpus)),
      efficiency_(efficiency.links),
      hop_(nanoseconds_from_us(efficiency.hop_us)) {
  CHECK(cluster.node >= 1 && cluster.gpus >= 1, "a cluster needs GPUs");
  links_ = reached({cluster.gpus / node_, node_, cluster.within, cluster.between}, efficiency_);
}

Topology Network::topology_of(const Group& group) const {
  Topology topology = links_;
  const int64_t together = ranks_in_node(cluster_, group);
  topology.ranks_per_node = together;
  topology.nodes = group.ranks / together;
  topology.between.bandwidth *= static_cast<double>(together) / static_cast<double>(node_);
  return topology;
}

Nanoseconds Network::call_of(const Group& group) const { return forerun::call_of(topology_of(group), efficiency_); }

Nanoseconds Network::all_reduce(Bytes bytes, const Group& group) const {
  if (group.ranks < 2 || bytes.value <= 0) return {};
  return call_of(group) + forerun::all_reduce(AllReduce::fastest, bytes, topology_of(group));
}

Nanoseconds Network::reduce_scatter(Bytes bytes, const Group& group) const {
  if (group.ranks < 2 || bytes.value <= 0) return {};
  return call_of(group) + forerun::reduce_scatter(bytes, topology_of(group));
}

Nanoseconds Network::all_gather(Bytes bytes, const Group& group) const {
  if (group.ranks < 2 || bytes.value <= 0) return {};
  return call_of(group) + forerun::all_gather(bytes, topology_of(group));
}

Nanoseconds Network::all_to_all(Bytes bytes, const Group& group) const {
  if (group.ranks < 2 || bytes.value <= 0) return {};
  return call_of(group) + forerun::all_to_all(bytes, topology_of(group));
}

Nanoseconds Network::send(Bytes bytes, int64_t stride, int64_t split) const {
  const bool inside = stride < node_;
  Link link = inside ? links_.within : links_.between;
  double moved = static_cast<double>(bytes.value);
  if (!inside) {
    // All GPUs of the node send at once; a tensor group sends its copy in parts, which are joined in the other node.
    link.bandwidth /= static_cast<double>(node_);
    moved /= static_cast<double>(std::max<int64_t>(split, 1));
  }
  return hop_ + link.latency + Nanoseconds(static_cast<int64_t>(moved / link.bandwidth * 1e9 + 0.5));
}

}  // namespace forerun::scale
