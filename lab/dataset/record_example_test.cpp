#include "lab/dataset/record_example.h"

#include <gtest/gtest.h>

#include "derive/work.h"
#include "graph/graph_builder.h"

namespace forerun::learn {
namespace {

// x (input) and w (parameter) -> mm -> relu_ (in place) -> add with a view of its own input; then a backward op.
TrainingRun small_run() {
  GraphBuilder b;
  const Shape shape = {4, 4};
  const auto storage = [&] { return b.add_storage(Bytes(64)); };
  const StorageId input = storage();
  const StorageId weight = storage();
  b.mark_root(input, Root::input, "x");
  b.mark_root(weight, Root::parameter, "w");
  const StorageId hidden = storage();
  const StorageId sum = storage();
  const StorageId gradient = storage();
  const TensorId x = b.add_tensor(input, DType::float32, shape);
  const TensorId w = b.add_tensor(weight, DType::float32, shape);
  const TensorId h = b.add_tensor(hidden, DType::float32, shape);
  const TensorId h_flat = b.add_tensor(hidden, DType::float32, Shape{16});
  const TensorId s = b.add_tensor(sum, DType::float32, shape);
  const TensorId g = b.add_tensor(gradient, DType::float32, shape);
  const auto add = [&](std::string_view name, Phase phase, std::vector<TensorId> inputs,
                       std::vector<TensorId> outputs) {
    b.add_op({.name = name, .phase = phase, .inputs = inputs, .outputs = outputs});
  };
  add("aten.mm.default", Phase::forward, {x, w}, {h});       // 0
  add("aten.relu_.default", Phase::forward, {h}, {h});       // 1
  add("aten.view.default", Phase::forward, {h}, {h_flat});   // 2
  add("aten.add.Tensor", Phase::forward, {h, h_flat}, {s});  // 3
  add("aten.mm.default", Phase::backward, {s, w}, {g});      // 4
  TrainingRun run;
  run.id = "small-1";
  run.family = "small";
  run.input.batch = 4;
  run.graph = b.finish();
  return run;
}

TEST(RecordExample, EdgesFollowStoragesThroughInPlaceOpsAndViews) {
  DataSet data;
  const Example example = example_of(small_run(), data);
  const std::vector<DataEdge> expected = {{0, 1, 64}, {1, 2, 64}, {2, 3, 128}, {3, 4, 64}};
  EXPECT_EQ(example.edges, expected);
}

TEST(RecordExample, RowsHoldTheDerivedWorkAndTheFiguresOfTheOp) {
  DataSet data;
  const TrainingRun run = small_run();
  const Example example = example_of(run, data);
  EXPECT_EQ(example.group, "small");
  EXPECT_EQ(example.batch, 4);
  ASSERT_EQ(example.ops.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    const OpWork work = work_of(run.graph, run.graph.op(OpId(i)));
    const OpRow& row = data.rows()[example.ops[i]];
    EXPECT_EQ(row.amount(Amount::flops), static_cast<float>(work.flops.value));
    EXPECT_EQ(row.cls, work.cls);
    EXPECT_EQ(row.on_gpu, i != 2);
  }
  const OpRow& product = data.rows()[example.ops[0]];
  EXPECT_EQ(data.name_of_row(product), "aten.mm.default");
  EXPECT_EQ(product.amount(Amount::flops), 2 * 4 * 4 * 4);
  EXPECT_EQ(product.amount(Amount::weight_bytes), 64);
  EXPECT_EQ(product.amount(Amount::input_bytes), 64);
  EXPECT_EQ(product.amount(Amount::output_bytes), 64);
  EXPECT_EQ(product.amount(Amount::input_elements), 32);
  EXPECT_EQ(product.hyper[14], 4);  // m
  EXPECT_EQ(product.hyper[29], 2);  // inputs
  const OpRow& backward = data.rows()[example.ops[4]];
  EXPECT_EQ(backward.phase, Phase::backward);
  EXPECT_EQ(backward.amount(Amount::weight_bytes), 128);  // the weight and its gradient
}

TEST(RecordExample, AnEmptyGraphIsAnEmptyExample) {
  DataSet data;
  TrainingRun run;
  run.graph = GraphBuilder().finish();
  const Example example = example_of(run, data);
  EXPECT_TRUE(example.ops.empty());
  EXPECT_TRUE(example.edges.empty());
}

}  // namespace
}  // namespace forerun::learn
