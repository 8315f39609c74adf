// The graph that Driple looks at: the ops of an iteration with kernels, edges without direction, the largest connected
// part, in groups (fluid_communities.h).
//
// With GraphNodes::all there are nodes for what ops read and no op makes, as in the paper: a constant for each op with
// weights, an input for each op of the forward pass that reads what nobody wrote, and one node each of hyper-parameters for
// the inputs (batch) and for the optimizer's ops (learning rate and the like).
//
// Features of a group: the sum of its operators' frequencies (share of that operator among all nodes of the training
// graphs), the sum of tensor sizes (bytes that ops write) and the number of ops; each as a logarithm and divided by its
// maximum over the training graphs: sizes span nine decades. `uniform` makes M groups, `proportional`
// M = 10 log10(nodes), for each graph and not for each batch; `none` leaves every op by itself.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/dataset/dataset.h"

namespace forerun::learn {

enum class Grouping : uint8_t { none, uniform, proportional };
enum class GraphNodes : uint8_t { ops, all };
inline constexpr size_t kGroupFeatures = 3;
inline constexpr uint64_t kGroupingSeed = 42;

struct GroupedGraph {
  std::vector<std::array<double, kGroupFeatures>> features;  // by group: frequency, bytes, ops
  std::vector<std::pair<uint32_t, uint32_t>> edges;          // between groups, in both directions, sorted
};

// Operator frequencies over these examples, by name.
using OperatorFrequencies = std::map<std::string, double>;
OperatorFrequencies operator_frequencies(const DataSet& data, const Selection& examples,
                                         GraphNodes nodes = GraphNodes::ops);

// How many groups a graph of so many nodes has; `uniform`: M of uniform grouping.
size_t group_count(Grouping grouping, size_t nodes, size_t uniform);

struct GroupingOptions {
  Grouping grouping = Grouping::proportional;
  size_t uniform = 100;
  GraphNodes nodes = GraphNodes::ops;
};
GroupedGraph group_ops(const DataSet& data, const Example& example, const OperatorFrequencies& frequencies,
                       const GroupingOptions& options);

}  // namespace forerun::learn
