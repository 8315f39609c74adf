#include "timeline/exchange_costs.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cost/collective/contention.h"

namespace forerun {
namespace {

Bytes shrunk(Bytes bytes, double to) { return Bytes(std::llround(static_cast<double>(bytes.value) * to)); }

// A link without latency: what moving the bytes takes.
Link without_latency(Link link) {
  link.latency = Nanoseconds(0);
  return link;
}

double ratio(Nanoseconds part, Nanoseconds whole) {
  return whole.value > 0 ? static_cast<double>(part.value) / static_cast<double>(whole.value) : 0;
}

}  // namespace

ExchangePart collective_part(Nanoseconds time, const Topology& topology) {
  const double traffic = traffic_of(topology, topology.nodes < 2 ? Level::within : Level::between);
  return {0, time, Nanoseconds(0), collective_slowdown(traffic), traffic};
}

GradientExchange by_reduce_scatter(const Topology& topology, Nanoseconds per_message) {
  GradientExchange exchange;
  exchange.parts = [topology, per_message](Bytes bytes) -> std::vector<ExchangePart> {
    if (ranks_of(topology) < 2) return {};
    return {collective_part(per_message + reduce_scatter(bytes, topology), topology)};
  };
  return exchange;
}

GradientExchange by_all_reduce(const AllReduceSetup& setup) {
  CHECK(setup.in_flight >= 1, "an exchange with nothing in flight");
  GradientExchange exchange;
  exchange.lanes = {"network", "links within the nodes"};
  const auto fixed = [setup](const CollectiveStage& empty) { return empty.time + setup.per_message; };
  const std::vector<CollectiveStage> empty = all_reduce_stages(setup.algorithm, Bytes(0), setup.topology);
  for (const CollectiveStage& stage : empty) exchange.latency += stage.time;
  if (!empty.empty()) exchange.latency += setup.per_message;
  exchange.parts = [setup, fixed](Bytes bytes) {
    const Bytes sent = shrunk(bytes, setup.shrinks_to);
    const auto stages = all_reduce_stages(setup.algorithm, sent, setup.topology);
    const auto bare = all_reduce_stages(setup.algorithm, Bytes(0), setup.topology);
    std::vector<ExchangePart> parts;
    for (size_t i = 0; i < stages.size(); ++i) {
      const Nanoseconds start = i == 0 ? fixed(bare[i]) : bare[i].time;
      const Nanoseconds shared(start.value / setup.in_flight);
      const Nanoseconds moving = std::max(Nanoseconds(0), stages[i].time - bare[i].time);
      // Collectives are kernels: what they move through the GPU's own links competes with computation.
      const double traffic = traffic_of(setup.topology, stages[i].level);
      const double share = ratio(moving, moving + shared);
      parts.push_back({stages[i].level == Level::between ? size_t{0} : size_t{1}, moving + shared, start - shared,
                       1 + share * (collective_slowdown(traffic) - 1), traffic * share});
    }
    return parts;
  };
  return exchange;
}

GradientExchange by_servers(const ServerSetup& setup) {
  GradientExchange exchange;
  exchange.grouping = Grouping::each;
  exchange.slice = kServerPart;
  exchange.lanes = {"to the servers", "from the servers", "links within the nodes"};
  const Topology& topology = setup.topology;
  ParameterServers remote{topology.nodes, setup.servers > 0 ? setup.servers : topology.nodes,
                          without_latency(topology.between), setup.colocated};
  exchange.latency = topology.nodes < 2 ? Nanoseconds(0) : topology.between.latency + topology.between.latency;
  exchange.parts = [remote, topology](Bytes bytes) {
    std::vector<ExchangePart> parts;
    const bool several = topology.ranks_per_node > 1;
    const double traffic = traffic_of(topology, Level::between);
    const auto within = [](Nanoseconds time) { return ExchangePart{2, time, Nanoseconds(0), kCollectiveSlowdown, 1}; };
    if (several) parts.push_back(within(reduce_scatter(bytes, topology.ranks_per_node, topology.within)));
    if (topology.nodes > 1) {
      parts.push_back({0, parameter_push(bytes, remote), topology.between.latency, 1, traffic});
      // Answers of a server on a worker's machine leave by the same connection as what the worker pushes.
      const size_t back = remote.colocated ? 0 : 1;
      parts.push_back({back, parameter_pull(bytes, remote), topology.between.latency, 1, traffic});
    }
    if (several) parts.push_back(within(all_gather(bytes, topology.ranks_per_node, topology.within)));
    return parts;
  };
  return exchange;
}

}  // namespace forerun
