// Graphs of iterations as numbers: node, edge and whole-run features for DNNPerf and for the baselines of its paper.
//
// Nodes are the ops of the forward pass (or of the whole iteration): op name, class, type, hyper-parameters, sizes of
// weights, inputs, outputs and temporaries, FLOPs. An edge runs with the data and one runs back, as a gradient would;
// edges carry their direction, the bytes delivered and the bandwidth of the memory they pass through. Where an example knows no edges, each op leads to the next. What
// holds for the whole run (batch, input size, precision, optimizer, peak FLOPS, capacity and bandwidth of the device, how
// slow the host is where that was measured) is kept once a graph; networks add it to every node.
//
// Amounts stand there twice: as they are, so that sums over nodes mean something, and as ln(1 + x), since they span ten
// orders of magnitude. All columns are scaled by what training data showed. Nothing here needs LibTorch.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.h"
#include "lab/dataset/features.h"

namespace forerun::learn {

struct GraphFeatureChoice {
  bool whole_iteration = false;  // nodes of backward and update too
  bool tensor_cost = true;       // sizes and FLOPs of nodes, bytes of edges
  Scaler::Kind scaler = Scaler::Kind::min_max;
};

// Some examples as tables. Nodes and edges of one graph stand together, graphs in the order they were asked for.
struct GraphTables {
  size_t node_width = 0;
  std::vector<float> rows;         // distinct nodes x node_width
  std::vector<int64_t> names;      // of the distinct nodes: index in the vocabulary
  std::vector<int64_t> nodes;      // of all graphs: which distinct node
  std::vector<size_t> first_node;  // by graph, and one past the last
  std::vector<int64_t> sources;    // of edges: place of the node in its graph
  std::vector<int64_t> targets;
  std::vector<float> edges;        // edges x edge_width
  std::vector<size_t> first_edge;  // by graph, and one past the last
  std::vector<float> whole;        // graphs x whole_width
};

class GraphFeatures {
 public:
  static constexpr size_t kEdgeWidth = 5;  // forward, backward, bytes, ln(1 + bytes), bandwidth of access
  static constexpr size_t kWholeWidth = 2 + 3 + 6 + 3 + 1 + 3 + 2;

  GraphFeatures() = default;
  // The vocabulary and the scales of these examples.
  GraphFeatures(const GraphFeatureChoice& choice, const DataSet& data, const Selection& examples);

  [[nodiscard]] size_t node_width() const { return nodes_.width(); }
  [[nodiscard]] const OpVocabulary& vocabulary() const { return encoder_.vocabulary(); }
  [[nodiscard]] const GraphFeatureChoice& choice() const { return choice_; }
  [[nodiscard]] GraphTables tables(const DataSet& data, const Selection& examples) const;

  [[nodiscard]] nlohmann::json to_json() const;
  static Result<GraphFeatures> from_json(const nlohmann::json& json);

 private:
  [[nodiscard]] GraphTables unscaled(const DataSet& data, const Selection& examples) const;
  void add_graph(const DataSet& data, const Example& example, double bandwidth, std::vector<int64_t>& place_of_row,
                 GraphTables& tables) const;
  [[nodiscard]] size_t columns_of_nodes() const;
  void add_row(const DataSet& data, const Example& example, const OpRow& row, GraphTables& tables) const;

  GraphFeatureChoice choice_;
  FeatureEncoder encoder_;  // of what an op is, not scaled
  Scaler nodes_, edges_, whole_;
};

}  // namespace forerun::learn
