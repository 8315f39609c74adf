#include "learn/graph_tensors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "derive/work.h"
#include "graph/graph_builder.h"

namespace forerun::learn {
namespace {

// x (input) -> mm -> relu_ (in place) -> add with a view of its own input; then a backward op.
Graph small_graph() {
  GraphBuilder b;
  const StorageId input = b.add_storage(Bytes(64));
  b.mark_root(input, Root::input, "x");
  const StorageId hidden = b.add_storage(Bytes(64));
  const StorageId sum = b.add_storage(Bytes(64));
  const StorageId gradient = b.add_storage(Bytes(64));
  const Shape shape = {4, 4};
  const Shape flat = {16};
  const TensorId x = b.add_tensor(input, DType::float32, shape);
  const TensorId h = b.add_tensor(hidden, DType::float32, shape);
  const TensorId h_flat = b.add_tensor(hidden, DType::float32, flat);
  const TensorId s = b.add_tensor(sum, DType::float32, shape);
  const TensorId g = b.add_tensor(gradient, DType::float32, shape);

  const auto add = [&](std::string_view name, Phase phase, std::vector<TensorId> inputs,
                       std::vector<TensorId> outputs) {
    b.add_op({.name = name, .phase = phase, .inputs = inputs, .outputs = outputs});
  };
  add("aten.mm.default", Phase::forward, {x, x}, {h});       // 0
  add("aten.relu_.default", Phase::forward, {h}, {h});       // 1
  add("aten.view.default", Phase::forward, {h}, {h_flat});   // 2
  add("aten.add.Tensor", Phase::forward, {h, h_flat}, {s});  // 3
  add("aten.mm.default", Phase::backward, {s, x}, {g});      // 4
  return b.finish();
}

std::vector<int64_t> values(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

TEST(GraphTensors, EdgesFollowStoragesThroughInPlaceOpsAndViews) {
  const Graph graph = small_graph();
  const GraphTensors tensors = graph_tensors(graph, OpVocabulary());
  EXPECT_EQ(values(tensors.edges[0]), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(values(tensors.edges[1]), (std::vector<int64_t>{1, 2, 3, 4}));
}

TEST(GraphTensors, NamesAndPhasesAreIndices) {
  const Graph graph = small_graph();
  OpVocabulary vocabulary;
  vocabulary.add(graph);
  EXPECT_EQ(vocabulary.size(), 5);  // mm, relu_, view, add and "any other"
  EXPECT_EQ(vocabulary.index_of("aten.never_seen.default"), 0);
  const GraphTensors tensors = graph_tensors(graph, vocabulary);
  EXPECT_EQ(values(tensors.names), (std::vector<int64_t>{1, 2, 3, 4, 1}));
  EXPECT_EQ(values(tensors.phases), (std::vector<int64_t>{0, 0, 0, 0, 1}));
}

TEST(GraphTensors, FeaturesAreTheLogarithmsOfTheDerivedWork) {
  const Graph graph = small_graph();
  const GraphTensors tensors = graph_tensors(graph, OpVocabulary());
  ASSERT_EQ(tensors.features.sizes(), (std::vector<int64_t>{5, kFeatureCount}));
  const auto features = tensors.features.accessor<float, 2>();
  for (int64_t i = 0; i < 5; ++i) {
    const OpWork work = work_of(graph, graph.op(OpId(static_cast<size_t>(i))));
    EXPECT_FLOAT_EQ(features[i][0], static_cast<float>(std::log1p(work.flops.value)));
    EXPECT_FLOAT_EQ(features[i][4], std::log1p(16.0F));
  }
  EXPECT_FLOAT_EQ(features[0][0], std::log1p(2.0F * 4 * 4 * 4));  // a matrix product: 2 m n k
  EXPECT_FLOAT_EQ(features[0][3], std::log1p(32.0F));
}

TEST(GraphTensors, AnEmptyGraphGivesEmptyTensors) {
  const GraphTensors tensors = graph_tensors(GraphBuilder().finish(), OpVocabulary());
  EXPECT_EQ(tensors.names.numel(), 0);
  EXPECT_EQ(tensors.edges.sizes(), (std::vector<int64_t>{2, 0}));
}

}  // namespace
}  // namespace forerun::learn
