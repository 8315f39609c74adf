// Ops that few models have: writes into slices, masks that are trained, products with an addend, complex rotations.
#include <gtest/gtest.h>

#include <algorithm>

#include "derive/iteration.h"
#include "graph/forward_builder.h"

namespace forerun::derive {
namespace {

using OpNames = std::vector<std::string>;

Graph trained_model(ForwardBuilder& b, const TrainingSetup& setup = {}) {
  Result<Graph> forward = b.finish();
  EXPECT_TRUE(forward.ok()) << forward.error().message();
  Result<Graph> graph = derive_iteration(*forward, {.kind = InputKind::flat}, setup);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_TRUE(verify(*graph).ok());
  return std::move(*graph);
}

OpNames ops_of_node(const Graph& graph, std::string_view node) {
  OpNames found;
  for (const Op& op : graph.ops()) {
    const bool within = op.phase == Phase::backward && graph.names()[op.autograd_node] == node;
    if (within) found.push_back(graph.name(op).substr(5));
  }
  return found;
}

int64_t times(const Graph& graph, std::string_view name) {
  return std::count_if(graph.ops().begin(), graph.ops().end(), [&](const Op& op) { return graph.name(op) == name; });
}

// [8, 16] joined of two projections by writing them into an empty tensor.
TEST(RareOps, WritesIntoSlicesHaveGradients) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {8, 16});
  const TensorId left = b.linear(x, b.parameter("left", {10, 16}), std::nullopt);
  const TensorId right = b.linear(x, b.parameter("right", {6, 16}), std::nullopt);
  const TensorId whole = b.opaque("aten.new_empty.default", {left}, {{{8, 16}, DType::float32}}).front();
  b.binary("aten.copy_.default", b.slice(whole, 1, 0, 10), left);
  b.binary("aten.copy_.default", b.slice(whole, 1, 10, 16), right);
  b.result(whole);
  const Graph graph = trained_model(b);
  // The second write comes first: its part of the gradient is set to zero for what was there before.
  EXPECT_EQ(ops_of_node(graph, "torch::autograd::CopySlices"),
            (OpNames{"new_empty_strided.default", "copy_.default", "as_strided.default", "clone.default",
                     "zeros_like.default", "copy_.default", "new_empty_strided.default", "copy_.default",
                     "as_strided.default", "clone.default"}));
  EXPECT_EQ(times(graph, "aten.mm.default"), 4) << "two products, and a gradient of each weight";
}

// Attention of 2 heads over 20 positions with a mask that is trained.
Graph masked_attention(double dropout) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {2, 20, 16});
  const TensorId y = b.linear(x, b.parameter("weight", {16, 16}), std::nullopt);
  const TensorId heads = b.transpose(b.view(y, {2, 20, 2, 8}), 1, 2);
  const TensorId mask = b.parameter("mask", {1, 2, 20, 20});
  const TensorId out = b.attention(heads, heads, heads, {.mask = mask, .dropout = dropout});
  b.result(b.reshape(b.transpose(out, 1, 2), {40, 16}));
  return trained_model(b);
}

TEST(RareOps, TrainedMasksGetTheirGradientFromMemoryEfficientAttention) {
  const Graph graph = masked_attention(0);
  EXPECT_EQ(times(graph, "aten._scaled_dot_product_efficient_attention.default"), 1);
  EXPECT_EQ(times(graph, "aten._scaled_dot_product_efficient_attention_backward.default"), 1);
  // Rows of 20 do not begin at multiples of 8: they are padded, and the gradient is cut.
  EXPECT_EQ(times(graph, "aten.constant_pad_nd.default"), 2);
}

TEST(RareOps, TrainedMasksWithDropoutAreComposed) {
  const Graph graph = masked_attention(0.1);
  EXPECT_EQ(times(graph, "aten._scaled_dot_product_efficient_attention.default"), 0);
  EXPECT_EQ(times(graph, "aten._safe_softmax.default"), 1);
  EXPECT_EQ(times(graph, "aten.native_dropout_backward.default"), 1);
}

TEST(RareOps, ProductsWithAnAddendScaleTheirGradients) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {2, 4, 8});
  const TensorId y = b.linear(x, b.parameter("weight", {8, 8}), std::nullopt);
  const TensorId addend = b.create("aten.zeros.default", {2, 1, 4}, DType::float32);
  const TensorId scores = b.opaque("aten.baddbmm.default", {addend, y, b.transpose(y, 1, 2)},
                                   {{{2, 4, 4}, DType::float32}}, {{"beta", 1.0}, {"alpha", 0.25}})
                              .front();
  b.result(b.reshape(scores, {8, 4}));
  const Graph graph = trained_model(b);
  EXPECT_EQ(ops_of_node(graph, "BaddbmmBackward0"),
            (OpNames{"transpose.int", "bmm.default", "mul.Scalar", "transpose.int", "bmm.default", "mul.Scalar"}));
}

TEST(RareOps, RotationsAsComplexProductsKeepTheTableAlone) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {4, 8});
  const TensorId y = b.linear(x, b.parameter("weight", {8, 8}), std::nullopt);
  const TensorId table = b.buffer("table", {4, 4}, DType::complex64);
  const TensorId pairs = b.view(y, {4, 4, 2});
  const TensorId turned = b.opaque("forerun.rotate_complex.default", {pairs, table}, {{{4, 4, 2}, DType::float32}})[0];
  b.result(b.view(turned, {4, 8}));
  const Graph graph = trained_model(b);
  EXPECT_EQ(
      ops_of_node(graph, "ViewAsRealBackward0"),
      (OpNames{"_conj.default", "clone.default", "view_as_complex.default", "mul.Tensor", "view_as_real.default"}));
}

TEST(RareOps, FrozenParametersCountAndAreNotTrained) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {4, 8});
  const TensorId frozen = b.frozen_parameter("positions", {4, 8});
  b.result(b.linear(b.add(x, frozen), b.parameter("weight", {3, 8}), std::nullopt));
  const Graph graph = trained_model(b);
  EXPECT_EQ(graph.parameter_count(), 32 + 24);
  EXPECT_EQ(times(graph, "aten.mm.default"), 2) << "the product and the gradient of its weight";
}

}  // namespace
}  // namespace forerun::derive
