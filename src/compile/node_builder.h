// NodeBuilder: appends nodes of the op at hand to a joint graph, and remembers what later ops ask of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "compile/joint_graph.h"
#include "graph/graph.h"

namespace forerun::compile {

class NodeBuilder {
 public:
  NodeBuilder(const Graph& graph, JointGraph& joint, bool channels_last)
      : graph_(graph), joint_(joint), channels_last_(channels_last) {}

  void begin(OpId op, bool backward) { op_ = op, backward_ = backward, steps_ = 1; }
  // Of elementwise nodes that follow, of this op (Node::steps).
  void set_steps(int steps) { steps_ = steps; }

  ValueId pointwise(std::vector<Read> reads, int64_t elements, DType dtype, uint8_t flags = kComputedAgain | kFusible);
  ValueId reduction(std::vector<Read> reads, int64_t results, int64_t reduced, bool inner, DType dtype,
                    bool spread = false);
  // Of the last reduction: Node::apart.
  void set_apart() { joint_.nodes.back().apart = true; }
  // Adds into rows of what it reads last.
  ValueId scatter(std::vector<Read> reads, int64_t elements, DType dtype, Meeting meeting = Meeting::seldom);
  // The op as it is; the values of its outputs, in order, or of the first of them. `beside`: Node::beside.
  std::vector<ValueId> library(std::vector<Read> reads, ValueId beside = {}, size_t outputs = SIZE_MAX);
  // A product that makes more elements than it does eagerly.
  ValueId product(std::vector<Read> reads, int64_t elements);

  // What rows became in a norm, by the scale that it divided them by.
  void set_normalized(ValueId scale, ValueId normalized) { normalized_[scale.value] = normalized; }
  [[nodiscard]] ValueId normalized(ValueId scale) const { return found_in(normalized_, scale); }
  // Where a value lies above the kink of an activation, or is the largest of a window.
  void set_above(ValueId value, ValueId above) { above_[value.value] = above; }
  [[nodiscard]] ValueId above(ValueId value) const { return found_in(above_, value); }

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const JointGraph& joint() const { return joint_; }
  [[nodiscard]] OpId op() const { return op_; }
  [[nodiscard]] bool channels_last() const { return channels_last_; }

 private:
  using ValueMap = std::unordered_map<uint32_t, ValueId>;
  static ValueId found_in(const ValueMap& map, ValueId key) {
    const auto found = map.find(key.value);
    return found == map.end() ? ValueId() : found->second;
  }
  ValueId value(DType dtype, int64_t elements);

  const Graph& graph_;
  JointGraph& joint_;
  bool channels_last_;  // Round::channels_last
  OpId op_;
  bool backward_ = false;
  int steps_ = 1;
  ValueMap normalized_;
  ValueMap above_;
};

}  // namespace forerun::compile
