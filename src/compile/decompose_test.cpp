// What composite ops are taken apart into: types and nodes of small graphs by hand.
#include "compile/decompose.h"

#include <gtest/gtest.h>

#include <vector>

#include "compile/node_builder.h"
#include "graph/graph_builder.h"

namespace forerun::compile {
namespace {

// Logits of an image, as autocast widens, enlarges and normalizes them.
struct Enlarging {
  GraphBuilder build;
  TensorId narrow = tensor({2, 8, 4, 4}, DType::bfloat16);
  TensorId wide = tensor({2, 8, 4, 4}, DType::float32);
  TensorId enlarged = tensor({2, 8, 16, 16}, DType::float32);
  TensorId likely = tensor({2, 8, 16, 16}, DType::float32);

  TensorId tensor(const Shape& shape, DType dtype) {
    int64_t elements = 1;
    for (const int64_t size : shape) elements *= size;
    return build.add_tensor(build.add_storage(Bytes(elements * static_cast<int64_t>(size_of(dtype)))), dtype, shape);
  }
  void op(std::string_view name, TensorId in, TensorId out) {
    const TensorId inputs[] = {in}, outputs[] = {out};
    build.add_op({.name = name, .module = "head", .inputs = inputs, .outputs = outputs, .sequence = 1});
  }
};

// The joint graph of ops that each read the first result of the one before, the first a given value.
JointGraph taken_apart(const Graph& graph, DType given) {
  JointGraph joint;
  NodeBuilder build(graph, joint, false);
  joint.values.push_back({.dtype = given, .elements = graph.element_count(graph.inputs(graph.ops()[0])[0])});
  ValueId last(0);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    build.begin(OpId(i), false);
    const std::vector<Read> reads = {{last, joint.value(last).elements}};
    last = decompose(build, graph.ops()[i], reads)[0];
  }
  return joint;
}

// Eagerly all of it is float32; traced, the enlarged image stays in 16 bits, and so do the logarithms of its probabilities.
TEST(Decompose, LeavesEnlargedImagesAsNarrowAsTheyWere) {
  Enlarging e;
  e.op("aten._to_copy.default", e.narrow, e.wide);
  e.op("aten.upsample_bilinear2d.default", e.wide, e.enlarged);
  e.op("aten._log_softmax.default", e.enlarged, e.likely);
  const Graph graph = e.build.finish();
  const JointGraph joint = taken_apart(graph, DType::bfloat16);
  EXPECT_EQ(joint.values.back().dtype, DType::bfloat16);
  // Between the four neighbours, in two steps in float32 that are stored.
  std::vector<DType> steps;
  for (const Node& node : joint.nodes) {
    if (node.op == OpId(1)) steps.push_back(joint.value(node.makes[0]).dtype);
  }
  EXPECT_EQ(steps, (std::vector<DType>{DType::float32, DType::float32, DType::bfloat16}));
}

// The zeros that a gradient is added into lie plainly: with its channels last, what neighbours add to lies apart.
TEST(Decompose, AddsGradientsOfEnlargedImagesApart) {
  for (const bool last : {false, true}) {
    Enlarging e;
    const Shape shape = {2, 8, 16, 16};
    const Shape strides = {2048, 1, 128, 8};
    const TensorId turned = e.build.add_tensor(e.build.add_storage(Bytes(16384)), DType::float32, shape, strides);
    e.op("aten.upsample_bilinear2d_backward.default", last ? turned : e.enlarged, e.wide);
    const Graph graph = e.build.finish();
    const JointGraph joint = taken_apart(graph, DType::float32);
    int adding = 0;
    for (const Node& node : joint.nodes) {
      if (!node.has(kScatters)) continue;
      ++adding;
      EXPECT_EQ(node.meeting, last ? Meeting::apart : Meeting::seldom);
    }
    EXPECT_EQ(adding, 4);
  }
}

// What a script itself widens stays wide.
TEST(Decompose, KeepsTheTypeOfWhatIsNotEnlarged) {
  Enlarging e;
  e.op("aten._to_copy.default", e.narrow, e.wide);
  e.op("aten._log_softmax.default", e.wide, e.wide);
  const Graph graph = e.build.finish();
  EXPECT_EQ(taken_apart(graph, DType::bfloat16).values.back().dtype, DType::float32);
}

}  // namespace
}  // namespace forerun::compile
