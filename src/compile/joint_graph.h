// JointGraph: forward and backward pass of one micro-batch as torch.compile sees them: values and what makes them.
//
// AOTAutograd traces both passes into one functional graph: nothing is written twice, views are free, and composite ops
// are taken apart into elementwise work, reductions and calls of libraries (decompose.h). Here a view is the value it
// views; what is read of it is told by the reader. What the compiler does not see (the loss where a script computes it
// outside of the model, the optimizer) stays outside: its results are `given`, what it reads are results of the graph.
// The same cast is made once. The backward pass is traced under the autocast of the forward pass
// (backward_pass_autocast of torch/_functorch/config.py), which casts products that eager autograd runs in float32. Sources: torch/_functorch/partitioners.py, torch/_functorch/compile_utils.py and
// torch/_inductor/decomposition.py of PyTorch 2.13. Left out: dynamic
// shapes, subclasses of tensors, ops that write into views of their inputs (taken as writes of the whole).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun::compile {

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;

enum class NodeKind : uint8_t {
  pointwise,
  reduction,
  library,  // a product, convolution, attention, sort: runs as it does without the compiler
};

// What Inductor may do with a node, beside its kind.
enum NodeFlag : uint8_t {
  kComputedAgain = 1,  // may be computed again in the backward pass
  kFusible = 2,        // with those that read it
  kConstant = 4,       // reads nothing: part of whoever reads it
  kJoins = 8,          // concatenates: what it reads can be fused into it, never it into another
  kScatters = 16,      // adds into rows of a value that was filled before
  kStored = 32,        // whatever reads it
  kSpread = 64,        // a reduction whose groups do not lie in rows: nothing that runs over all elements joins it
  kTurns = 128,        // writes in another order than it reads: joins no reduction
};

struct Read {
  ValueId value;
  int64_t elements = 0;  // that are touched
  bool across = false;   // in another order than they lie in, so that neighbours are far apart
  bool parted = false;   // not one after the other as they lie: looked up, apart, or again between others
  bool viewed = false;   // in another shape than they were made in
  bool again = false;    // by several of the operations that the reader is made of
};

// How many elements that are added into the same row meet there.
enum class Meeting : uint8_t {
  seldom,
  apart,   // and what neighbouring threads add to lies apart: images whose gradient has its channels last
  often,   // a small table that all look up: biases of relative positions
  always,  // neighbouring threads do: so few rows there are
};

struct Value {
  NodeId made_by;  // invalid: given
  DType dtype = DType::float32;
  int64_t elements = 0;
  TensorId tensor;  // of the iteration, for shape and strides; invalid: an intermediate of a composite op
  StorageId given;  // where it lies, if it is given
  bool parameter = false;
  bool tangent = false;         // a gradient that the compiled backward pass is given
  bool returned = false;        // to the caller, though nobody there reads it: never written over
  bool forward_result = false;  // read outside, or left in a buffer
  bool backward_result = false;

  [[nodiscard]] int64_t bytes() const { return elements * static_cast<int64_t>(size_of(dtype)); }
};

struct Node {
  NodeKind kind = NodeKind::pointwise;
  uint8_t flags = kComputedAgain | kFusible;
  bool backward = false;              // of the backward pass, as eager autograd runs it
  bool inner = true;                  // a reduction over the last dimensions
  bool apart = false;                 // a reduction whose loops others join, though what becomes one lies far apart
  Meeting meeting = Meeting::seldom;  // where it adds into rows
  OpId op;
  int64_t elements = 1;  // of the result
  int64_t reduced = 1;   // elements that become one
  int steps = 1;         // operations that an element takes, elementwise (inner_steps.h)
  std::vector<Read> reads;
  std::vector<ValueId> makes;
  ValueId beside;  // stored for its sake, though it is another node that reads it

  [[nodiscard]] bool has(NodeFlag flag) const { return (flags & flag) != 0; }
};

struct JointGraph {
  std::vector<Value> values;
  std::vector<Node> nodes;  // in the order of the iteration

  [[nodiscard]] const Value& value(ValueId id) const { return values[id.value]; }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes[id.value]; }
};

// Where an op of an iteration runs.
enum class Place : uint8_t { outside, forward, backward };

// What one forward graph and its backward graph are compiled of: a micro-batch, or a piece of it (graph_breaks.h).
struct Round {
  size_t first = 0;  // op of the iteration, of the micro-batch
  size_t end = 0;
  std::vector<Place> places;  // by op of the micro-batch; other pieces are outside
  bool loss_inside = false;
  bool channels_last = false;  // convolutions of images are given their channels last (layout_rule.h)
  std::optional<DType> autocast;
};

// The micro-batches of an iteration, or the pieces of each, in the order of their forward passes; `loss_inside`: the model computes its loss
// itself; `autocast`: to what products are cast; `dynamo`: what Dynamo made of the model (then it tells whether the loss is inside), or null.
// `breaks` is given where the graph of the first micro-batch breaks.
std::vector<Round> rounds_of(const Graph& graph, bool loss_inside, std::optional<DType> autocast,
                             const DynamoTrace* dynamo, std::vector<GraphBreak>& breaks);

JointGraph joint_graph(const Graph& graph, const Round& round);

}  // namespace forerun::compile
