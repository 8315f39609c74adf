#include "lab/dataset/driple/op_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "lab/dataset/driple/fluid_communities.h"

namespace forerun::learn {
namespace {

constexpr uint32_t kNoGroup = std::numeric_limits<uint32_t>::max();
constexpr double kProportion = 10;  // groups for each decade of nodes

constexpr const char* kConstant = "forerun.constant";
constexpr const char* kInput = "forerun.input";
constexpr const char* kHyperParameters = "forerun.hyper_parameters";

struct GraphNode {
  std::string_view name;
  double bytes = 0;  // that it writes
};

struct NodeGraph {
  std::vector<GraphNode> nodes;
  std::vector<std::pair<uint32_t, uint32_t>> edges;

  uint32_t add(std::string_view name, double bytes) {
    nodes.push_back({name, bytes});
    return static_cast<uint32_t>(nodes.size() - 1);
  }
};

// What ops read and no op makes; `place` is the node of each op.
void add_sources(const DataSet& data, const Example& example, const std::vector<uint32_t>& place, NodeGraph& graph) {
  std::vector<bool> fed(example.ops.size());
  for (const DataEdge& edge : example.edges) fed[edge.target] = true;
  const uint32_t batch = graph.add(kHyperParameters, 0);
  const uint32_t optimizer = graph.add(kHyperParameters, 0);
  for (uint32_t i = 0; i < example.ops.size(); ++i) {
    if (place[i] == kNoGroup) continue;
    const OpRow& row = data.rows()[example.ops[i]];
    if (row.phase == Phase::update) graph.edges.emplace_back(optimizer, place[i]);
    if (const double weights = row.amount(Amount::weight_bytes); weights > 0 && row.phase != Phase::backward) {
      graph.edges.emplace_back(graph.add(kConstant, weights), place[i]);
    }
    if (row.phase == Phase::forward && !fed[i] && row.amount(Amount::input_bytes) > 0) {
      const uint32_t input = graph.add(kInput, row.amount(Amount::input_bytes));
      graph.edges.emplace_back(input, place[i]);
      graph.edges.emplace_back(batch, input);
    }
  }
}

NodeGraph node_graph(const DataSet& data, const Example& example, GraphNodes nodes) {
  NodeGraph graph;
  std::vector<uint32_t> place(example.ops.size(), kNoGroup);
  for (uint32_t i = 0; i < example.ops.size(); ++i) {
    const OpRow& row = data.rows()[example.ops[i]];
    if (row.on_gpu) place[i] = graph.add(data.name_of_row(row), row.amount(Amount::bytes_written));
  }
  for (const DataEdge& edge : example.edges) {
    if (place[edge.source] != kNoGroup && place[edge.target] != kNoGroup) {
      graph.edges.emplace_back(place[edge.source], place[edge.target]);
    }
  }
  if (nodes == GraphNodes::all) add_sources(data, example, place, graph);
  return graph;
}

// The largest connected part, and its edges, numbered among its nodes.
struct ConnectedNodes {
  std::vector<GraphNode> nodes;
  Neighbours graph;
};

ConnectedNodes connected_nodes(const NodeGraph& whole) {
  const Neighbours all = neighbours_of(whole.nodes.size(), whole.edges);
  ConnectedNodes connected;
  std::vector<uint32_t> kept(whole.nodes.size(), kNoGroup);
  for (const uint32_t node : largest_component(all)) {
    kept[node] = static_cast<uint32_t>(connected.nodes.size());
    connected.nodes.push_back(whole.nodes[node]);
  }
  connected.graph.resize(connected.nodes.size());
  for (uint32_t node = 0; node < whole.nodes.size(); ++node) {
    if (kept[node] == kNoGroup) continue;
    for (const uint32_t neighbour : all[node]) connected.graph[kept[node]].push_back(kept[neighbour]);
  }
  return connected;
}

}  // namespace

OperatorFrequencies operator_frequencies(const DataSet& data, const Selection& examples, GraphNodes nodes) {
  OperatorFrequencies counts;
  double all = 0;
  for (const uint32_t i : examples) {
    for (const GraphNode& node : node_graph(data, data.examples()[i], nodes).nodes) {
      counts[std::string(node.name)] += 1;
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
                       const GroupingOptions& options) {
  const NodeGraph whole = node_graph(data, example, options.nodes);
  const ConnectedNodes connected = connected_nodes(whole);
  GroupedGraph grouped;
  const size_t nodes = connected.nodes.size();
  if (nodes == 0) return grouped;
  const size_t groups = group_count(options.grouping, nodes, options.uniform);
  std::vector<uint32_t> group(nodes);
  if (groups == nodes) {
    for (uint32_t i = 0; i < nodes; ++i) group[i] = i;
  } else {
    group = fluid_communities(connected.graph, groups, kGroupingSeed);
  }
  grouped.features.resize(groups);
  for (uint32_t i = 0; i < nodes; ++i) {
    const auto known = frequencies.find(std::string(connected.nodes[i].name));
    std::array<double, kGroupFeatures>& features = grouped.features[group[i]];
    features[0] += known == frequencies.end() ? 0.0 : known->second;
    features[1] += connected.nodes[i].bytes;
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
