#include "lab/dataset/driple/op_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/dataset/driple/fluid_communities.h"

namespace forerun::learn {
namespace {

constexpr uint32_t kNoGroup = std::numeric_limits<uint32_t>::max();
constexpr double kProportion = 10;  // groups for each decade of nodes

const OpRow& grouped_row(const DataSet& data, const Example& example, size_t op) {
  return data.rows()[example.ops[op]];
}

// Ops with kernels that belong to the largest connected part, and its edges, numbered among those ops.
struct ConnectedOps {
  std::vector<uint32_t> ops;
  Neighbours graph;
};

ConnectedOps connected_ops(const DataSet& data, const Example& example) {
  std::vector<uint32_t> ops;
  std::vector<uint32_t> place(example.ops.size(), kNoGroup);
  for (uint32_t i = 0; i < example.ops.size(); ++i) {
    if (!grouped_row(data, example, i).on_gpu) continue;
    place[i] = static_cast<uint32_t>(ops.size());
    ops.push_back(i);
  }
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const DataEdge& edge : example.edges) {
    if (place[edge.source] != kNoGroup && place[edge.target] != kNoGroup) {
      edges.emplace_back(place[edge.source], place[edge.target]);
    }
  }
  const Neighbours all = neighbours_of(ops.size(), edges);
  ConnectedOps connected;
  std::vector<uint32_t> kept(ops.size(), kNoGroup);
  for (const uint32_t node : largest_component(all)) {
    kept[node] = static_cast<uint32_t>(connected.ops.size());
    connected.ops.push_back(ops[node]);
  }
  connected.graph.resize(connected.ops.size());
  for (uint32_t node = 0; node < ops.size(); ++node) {
    if (kept[node] == kNoGroup) continue;
    for (const uint32_t neighbour : all[node]) connected.graph[kept[node]].push_back(kept[neighbour]);
  }
  return connected;
}

}  // namespace

OperatorFrequencies operator_frequencies(const DataSet& data, const Selection& examples) {
  OperatorFrequencies counts;
  double all = 0;
  for (const uint32_t i : examples) {
    const Example& example = data.examples()[i];
    for (size_t op = 0; op < example.ops.size(); ++op) {
      const OpRow& row = grouped_row(data, example, op);
      if (!row.on_gpu) continue;
      counts[data.name_of_row(row)] += 1;
      all += 1;
    }
  }
  for (auto& [name, count] : counts) count /= all;
  return counts;
}

size_t group_count(Grouping grouping, size_t nodes, size_t uniform) {
  if (nodes <= 1 || grouping == Grouping::none) return nodes;
  if (grouping == Grouping::uniform) return std::min(nodes, std::max<size_t>(1, uniform));
  const double wanted = std::round(kProportion * std::log10(static_cast<double>(nodes)));
  return std::min(nodes, static_cast<size_t>(std::max(1.0, wanted)));
}

GroupedGraph group_ops(const DataSet& data, const Example& example, const OperatorFrequencies& frequencies,
                       Grouping grouping, size_t uniform) {
  const ConnectedOps connected = connected_ops(data, example);
  GroupedGraph grouped;
  const size_t nodes = connected.ops.size();
  if (nodes == 0) return grouped;
  const size_t groups = group_count(grouping, nodes, uniform);
  std::vector<uint32_t> group(nodes);
  if (groups == nodes) {
    for (uint32_t i = 0; i < nodes; ++i) group[i] = i;
  } else {
    group = fluid_communities(connected.graph, groups, kGroupingSeed);
  }
  grouped.features.resize(groups);
  for (uint32_t i = 0; i < nodes; ++i) {
    const OpRow& row = grouped_row(data, example, connected.ops[i]);
    const auto known = frequencies.find(data.name_of_row(row));
    std::array<double, kGroupFeatures>& features = grouped.features[group[i]];
    features[0] += known == frequencies.end() ? 0.0 : known->second;
    features[1] += row.amount(Amount::bytes_written);
    features[2] += 1;
    for (const uint32_t neighbour : connected.graph[i]) {
      if (group[i] != group[neighbour]) grouped.edges.emplace_back(group[i], group[neighbour]);
    }
  }
  std::sort(grouped.edges.begin(), grouped.edges.end());
  grouped.edges.erase(std::unique(grouped.edges.begin(), grouped.edges.end()), grouped.edges.end());
  return grouped;
}

}  // namespace forerun::learn
