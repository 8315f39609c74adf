#include "scale/network.h"

#include <algorithm>

#include "base/check.h"
#include "cost/collective/collective.h"

namespace forerun::scale {

int64_t ranks_in_node(const GpuCluster& cluster, const Group& group) {
  return std::clamp<int64_t>(cluster.node / std::max<int64_t>(group.stride, 1), 1, group.ranks);
}

Network::Network(const GpuCluster& cluster, const Efficiency& efficiency)
    : gpus_(cluster.gpus),
      node_(std::min(cluster.node, cluster.gpus)),
      within_(cluster.within),
      between_(cluster.between) {
  CHECK(cluster.node >= 1 && cluster.gpus >= 1, "a cluster needs GPUs");
  within_.bandwidth *= efficiency.within.share;
  within_.latency = nanoseconds_from_us(efficiency.within.step_us);
  between_.bandwidth *= efficiency.between.share;
  between_.latency = std::max(between_.latency, nanoseconds_from_us(efficiency.between.step_us));
  within_call_ = nanoseconds_from_us(efficiency.within.call_us);
  between_call_ = nanoseconds_from_us(efficiency.between.call_us);
  hop_ = nanoseconds_from_us(efficiency.hop_us);
}

Link Network::link_of(const Group& group) const {
  const int64_t together = std::clamp<int64_t>(node_ / std::max<int64_t>(group.stride, 1), 1, group.ranks);
  if (together >= group.ranks) return within_;
  Link link = between_;
  // Every group with GPUs in this node uses its connection now.
  link.bandwidth *= static_cast<double>(together) / static_cast<double>(node_);
  if (together > 1) link.bandwidth = std::min(link.bandwidth, within_.bandwidth);
  return link;
}

Nanoseconds Network::call_of(const Group& group) const {
  const int64_t together = std::clamp<int64_t>(node_ / std::max<int64_t>(group.stride, 1), 1, group.ranks);
  return together >= group.ranks ? within_call_ : between_call_;
}

Nanoseconds Network::all_reduce(Bytes bytes, const Group& group) const {
  if (group.ranks < 2 || bytes.value <= 0) return {};
  const Link link = link_of(group);
  return call_of(group) +
         std::min(ring_all_reduce(bytes, group.ranks, link), double_tree_all_reduce(bytes, group.ranks, link));
}

Nanoseconds Network::reduce_scatter(Bytes bytes, const Group& group) const {
  if (group.ranks < 2 || bytes.value <= 0) return {};
  return call_of(group) + forerun::reduce_scatter(bytes, group.ranks, link_of(group));
}

Nanoseconds Network::all_gather(Bytes bytes, const Group& group) const {
  if (group.ranks < 2 || bytes.value <= 0) return {};
  return call_of(group) + forerun::all_gather(bytes, group.ranks, link_of(group));
}

Nanoseconds Network::send(Bytes bytes, int64_t stride, int64_t split) const {
  const bool inside = stride < node_;
  Link link = inside ? within_ : between_;
  double moved = static_cast<double>(bytes.value);
  if (!inside) {
    // All GPUs of the node send at once; a tensor group sends its copy in parts, which are joined in the other node.
    link.bandwidth /= static_cast<double>(node_);
    moved /= static_cast<double>(std::max<int64_t>(split, 1));
  }
  return hop_ + link.latency + Nanoseconds(static_cast<int64_t>(moved / link.bandwidth * 1e9 + 0.5));
}

ServerExchange Network::by_servers(Bytes bytes, int64_t servers) const {
  ServerExchange times;
  if (gpus_ < 2 || bytes.value <= 0) return times;
  if (node_ > 1) {
    times.reduce = within_call_ + forerun::reduce_scatter(bytes, node_, within_);
    times.gather = within_call_ + forerun::all_gather(bytes, node_, within_);
  }
  const int64_t nodes = gpus_ / node_;
  if (nodes < 2) return times;
  // Several servers of one node share its connection.
  const ParameterServers setup{
      .workers = nodes, .servers = std::clamp<int64_t>(servers, 1, nodes), .link = between_, .colocated = true};
  times.push = between_call_ + parameter_push(bytes, setup);
  times.pull = between_call_ + parameter_pull(bytes, setup);
  return times;
}

}  // namespace forerun::scale
