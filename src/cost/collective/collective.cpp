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
    case AllReduce::hierarchical: return "hierarchical";
    case AllReduce::blueconnect: return "blueconnect";
    case AllReduce::fastest: return "fastest";
  }
  return "?";
}

std::vector<std::string> all_reduce_names() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(AllReduce::fastest); ++i)
    names.emplace_back(name_of(static_cast<AllReduce>(i)));
  return names;
}

std::optional<AllReduce> all_reduce_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(AllReduce::fastest); ++i) {
    if (name_of(static_cast<AllReduce>(i)) == name) return static_cast<AllReduce>(i);
  }
  return std::nullopt;
}

Nanoseconds all_reduce(AllReduce algorithm, Bytes bytes, int64_t ranks, const Link& link) {
  switch (algorithm) {
    case AllReduce::ring:
    case AllReduce::hierarchical:
    case AllReduce::blueconnect: return ring_all_reduce(bytes, ranks, link);
    case AllReduce::tree: return tree_all_reduce(bytes, ranks, link);
    case AllReduce::double_tree: return double_tree_all_reduce(bytes, ranks, link);
    case AllReduce::fastest:
      return std::min(ring_all_reduce(bytes, ranks, link), double_tree_all_reduce(bytes, ranks, link));
  }
  return {};
}

double ring_volume(double bytes, int64_t ranks) { return ranks < 2 ? 0 : 2 * share_of_others(ranks) * bytes; }

Nanoseconds ring_all_reduce(Bytes bytes, int64_t ranks, const Link& link) {
  if (is_alone(bytes, ranks)) return {};
  return alpha_beta(2.0 * static_cast<double>(ranks - 1), ring_volume(volume_of(bytes), ranks), link);
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

namespace {

// The link that a ring over the whole topology is as slow as.
const Link& slowest(const Topology& topology) {
  const bool one_node = topology.nodes < 2;
  const bool within_slower = topology.ranks_per_node > 1 && topology.within.bandwidth < topology.between.bandwidth;
  return one_node || within_slower ? topology.within : topology.between;
}

// `laps` times around the ring of all ranks, moving `volume` bytes over each link.
Nanoseconds around(double laps, double volume, const Topology& topology) {
  const auto ranks = static_cast<double>(ranks_of(topology));
  const double steps = laps * (ranks - 1);
  const double far = topology.nodes < 2 ? 0 : std::min(steps, laps * static_cast<double>(topology.nodes));
  const double latency = far * static_cast<double>(topology.between.latency.value) +
                         (steps - far) * static_cast<double>(topology.within.latency.value);
  const Link& link = slowest(topology);
  return alpha_beta(0, volume, link) + Nanoseconds(std::llround(std::min(latency, 4e18)));
}

Nanoseconds deepest(double times, double volume, const Topology& topology, bool pipelined) {
  const double far = topology.nodes < 2 ? 0 : tree_depth(topology.nodes);
  const double near = topology.ranks_per_node < 2 ? 0 : tree_depth(topology.ranks_per_node);
  const Nanoseconds latency((far * static_cast<double>(topology.between.latency.value) +
                             near * static_cast<double>(topology.within.latency.value)) *
                            times);
  if (pipelined) return latency + alpha_beta(0, times * volume, slowest(topology));
  Nanoseconds time = latency;
  if (far > 0) time += alpha_beta(0, times * far * volume, topology.between);
  if (near > 0) time += alpha_beta(0, times * near * volume, topology.within);
  return time;
}

bool is_alone(Bytes bytes, const Topology& topology) {
  CHECK(topology.nodes >= 0 && topology.ranks_per_node >= 0, "a topology of a negative number of nodes or ranks");
  return is_alone(bytes, ranks_of(topology));
}

}  // namespace

Nanoseconds all_reduce(AllReduce algorithm, Bytes bytes, const Topology& topology) {
  if (is_alone(bytes, topology)) return {};
  const double volume = volume_of(bytes);
  switch (algorithm) {
    case AllReduce::ring: return around(2, ring_volume(volume, ranks_of(topology)), topology);
    case AllReduce::tree: return deepest(2, volume, topology, false);
    case AllReduce::double_tree: return deepest(2, volume, topology, true);
    case AllReduce::hierarchical:
    case AllReduce::blueconnect: return hierarchical_all_reduce(bytes, topology);
    case AllReduce::fastest:
      return std::min(all_reduce(AllReduce::ring, bytes, topology),
                      all_reduce(AllReduce::double_tree, bytes, topology));
  }
  return {};
}

Nanoseconds reduce_scatter(Bytes bytes, const Topology& topology) {
  if (is_alone(bytes, topology)) return {};
  return around(1, share_of_others(ranks_of(topology)) * volume_of(bytes), topology);
}

Nanoseconds all_gather(Bytes bytes, const Topology& topology) { return reduce_scatter(bytes, topology); }

Nanoseconds all_to_all(Bytes bytes, const Topology& topology) {
  if (is_alone(bytes, topology)) return {};
  const auto ranks = static_cast<double>(ranks_of(topology));
  const auto local = static_cast<double>(topology.ranks_per_node);
  // All ranks of a node send what is for other nodes over the node's one link.
  const double away = (ranks - local) / ranks * local * volume_of(bytes);
  const double near = (local - 1) / ranks * volume_of(bytes);
  const Nanoseconds far_time = topology.nodes < 2 ? Nanoseconds(0) : alpha_beta(ranks - local, away, topology.between);
  const Nanoseconds near_time = local < 2 ? Nanoseconds(0) : alpha_beta(local - 1, near, topology.within);
  return std::max(far_time, near_time);
}

Nanoseconds broadcast(Bytes bytes, const Topology& topology) {
  if (is_alone(bytes, topology)) return {};
  return deepest(1, volume_of(bytes), topology, false);
}

Nanoseconds point_to_point(Bytes bytes, const Link& link) {
  CHECK(bytes.value >= 0, "a message of a negative number of bytes");
  return alpha_beta(1, volume_of(bytes), link);
}

std::vector<CollectiveStage> all_reduce_stages(AllReduce algorithm, Bytes bytes, const Topology& topology) {
  if (is_alone(bytes, topology)) return {};
  if (algorithm != AllReduce::blueconnect || topology.nodes < 2 || topology.ranks_per_node < 2) {
    const Level level = &slowest(topology) == &topology.within ? Level::within : Level::between;
    return {{level, all_reduce(algorithm, bytes, topology)}};
  }
  return {{Level::within, reduce_scatter(bytes, topology.ranks_per_node, topology.within)},
          {Level::between, ring_all_reduce(bytes, topology.nodes, topology.between)},
          {Level::within, all_gather(bytes, topology.ranks_per_node, topology.within)}};
}

Nanoseconds negotiation(const Topology& topology) {
  if (is_alone(Bytes(0), topology)) return {};
  const Link& link = topology.nodes < 2 ? topology.within : topology.between;
  return Nanoseconds(std::llround(2 * tree_depth(ranks_of(topology))) * link.latency.value);
}

Nanoseconds parameter_push(Bytes bytes, const ParameterServers& setup) {
  CHECK(setup.workers >= 1 && setup.servers >= 1, "parameter servers need at least one worker and one server");
  const double crowding = static_cast<double>(setup.workers) / static_cast<double>(setup.servers);
  const double away = setup.colocated ? share_of_others(std::max(setup.workers, setup.servers)) : 1.0;
  return alpha_beta(1, std::max(1.0, crowding) * away * volume_of(bytes), setup.link);
}

Nanoseconds parameter_pull(Bytes bytes, const ParameterServers& setup) { return parameter_push(bytes, setup); }

Nanoseconds parameter_exchange(Bytes bytes, const ParameterServers& setup) {
  return parameter_push(bytes, setup) + parameter_pull(bytes, setup);
}

}  // namespace forerun
