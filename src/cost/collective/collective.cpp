#include "cost/collective/collective.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace forerun {
namespace {

// `steps` latencies plus `volume` bytes over the link.
Nanoseconds alpha_beta(double steps, double volume, const Link& link) {
  CHECK(link.bandwidth > 0, "a link without bandwidth: " + link.name);
  const double ns = steps * static_cast<double>(link.latency.value) + volume / link.bandwidth * 1e9;
  return Nanoseconds(std::llround(std::min(ns, 9e18)));
}

double share_of_others(int64_t ranks) { return static_cast<double>(ranks - 1) / static_cast<double>(ranks); }

double tree_depth(int64_t ranks) { return std::bit_width(static_cast<uint64_t>(ranks - 1)); }  // ceil(log2 n)

bool is_alone(Bytes bytes, int64_t ranks) {
  CHECK(bytes.value >= 0 && ranks >= 0, "a collective over a negative number of bytes or ranks");
  return ranks < 2;
}

double volume_of(Bytes bytes) { return static_cast<double>(bytes.value); }

}  // namespace

std::string_view name_of(AllReduce algorithm) {
  switch (algorithm) {
    case AllReduce::ring: return "ring";
    case AllReduce::tree: return "tree";
    case AllReduce::double_tree: return "double_tree";
  }
  return "?";
}

Nanoseconds all_reduce(AllReduce algorithm, Bytes bytes, int64_t ranks, const Link& link) {
  switch (algorithm) {
    case AllReduce::ring: return ring_all_reduce(bytes, ranks, link);
    case AllReduce::tree: return tree_all_reduce(bytes, ranks, link);
    case AllReduce::double_tree: return double_tree_all_reduce(bytes, ranks, link);
  }
  return {};
}

Nanoseconds ring_all_reduce(Bytes bytes, int64_t ranks, const Link& link) {
  if (is_alone(bytes, ranks)) return {};
  return alpha_beta(2.0 * static_cast<double>(ranks - 1), 2 * share_of_others(ranks) * volume_of(bytes), link);
}

Nanoseconds tree_all_reduce(Bytes bytes, int64_t ranks, const Link& link) {
  if (is_alone(bytes, ranks)) return {};
  return alpha_beta(2 * tree_depth(ranks), 2 * tree_depth(ranks) * volume_of(bytes), link);
}

Nanoseconds double_tree_all_reduce(Bytes bytes, int64_t ranks, const Link& link) {
  if (is_alone(bytes, ranks)) return {};
  return alpha_beta(2 * tree_depth(ranks), 2 * volume_of(bytes), link);
}

Nanoseconds reduce_scatter(Bytes bytes, int64_t ranks, const Link& link) {
  if (is_alone(bytes, ranks)) return {};
  return alpha_beta(static_cast<double>(ranks - 1), share_of_others(ranks) * volume_of(bytes), link);
}

Nanoseconds all_gather(Bytes bytes, int64_t ranks, const Link& link) { return reduce_scatter(bytes, ranks, link); }

Nanoseconds all_to_all(Bytes bytes, int64_t ranks, const Link& link) { return reduce_scatter(bytes, ranks, link); }

Nanoseconds broadcast(Bytes bytes, int64_t ranks, const Link& link) {
  if (is_alone(bytes, ranks)) return {};
  return alpha_beta(tree_depth(ranks), tree_depth(ranks) * volume_of(bytes), link);
}

Nanoseconds hierarchical_all_reduce(Bytes bytes, const Topology& topology) {
  const int64_t local = std::max<int64_t>(1, topology.ranks_per_node);
  // All ranks of a node send their shards over the node's one link, so together the whole tensor passes it.
  return reduce_scatter(bytes, local, topology.within) + ring_all_reduce(bytes, topology.nodes, topology.between) +
         all_gather(bytes, local, topology.within);
}

Nanoseconds parameter_push(Bytes bytes, const ParameterServers& setup) {
  CHECK(setup.workers >= 1 && setup.servers >= 1, "parameter servers need at least one worker and one server");
  const double crowding = static_cast<double>(setup.workers) / static_cast<double>(setup.servers);
  return alpha_beta(1, std::max(1.0, crowding) * volume_of(bytes), setup.link);
}

Nanoseconds parameter_pull(Bytes bytes, const ParameterServers& setup) { return parameter_push(bytes, setup); }

Nanoseconds parameter_exchange(Bytes bytes, const ParameterServers& setup) {
  return parameter_push(bytes, setup) + parameter_pull(bytes, setup);
}

}  // namespace forerun
