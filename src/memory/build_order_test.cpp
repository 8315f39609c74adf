#include "memory/build_order.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

struct Model {
  GraphBuilder builder;

  TensorId root(const std::string& name, Root kind, int64_t bytes = 512) {
    const StorageId id = builder.add_storage(Bytes(bytes), true);
    builder.mark_root(id, kind, name);
    return builder.add_tensor(id, DType::uint8, Shape{bytes});
  }
  TensorId made(int64_t bytes = 512) {
    return builder.add_tensor(builder.add_storage(Bytes(bytes), true), DType::uint8, Shape{bytes});
  }
};

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> found;
  for (const BuildStep& step : build_order(graph)) {
    found.push_back(graph.names()[graph.storage(step.storage).root_name]);
  }
  return found;
}

TEST(BuildOrder, MovesChildrenBeforeTheirParent) {
  Model model;
  model.root("token", Root::parameter);
  model.root("first.norm.weight", Root::parameter);
  model.root("first.weight", Root::parameter);
  model.root("second.weight", Root::parameter);
  model.root("first.norm.mean", Root::buffer);
  model.root("first.table", Root::buffer);
  model.root("batch", Root::input);
  const std::vector<std::string> expected = {"first.norm.weight", "first.norm.mean", "first.weight",
                                             "first.table",       "second.weight",   "token"};
  EXPECT_EQ(names(model.builder.finish()), expected);
}

TEST(BuildOrder, HoldsRecurrentWeightsApartFirst) {
  Model model;
  const StorageId flat = model.builder.add_storage(Bytes(3000), true);
  model.builder.mark_root(flat, Root::parameter, "rnn.weight_ih_l0");
  const TensorId whole = model.builder.add_tensor(flat, DType::uint8, Shape{3000});
  const TensorId first = model.builder.add_tensor(flat, DType::uint8, Shape{1000});
  const TensorId second = model.builder.add_tensor(flat, DType::uint8, Shape{2000});
  const TensorId out = model.made();
  const std::vector<TensorId> inputs = {first, second, whole};
  const std::vector<TensorId> outputs = {out};
  for (int twice = 0; twice < 2; ++twice) {
    model.builder.add_op({.name = "aten._cudnn_rnn.default", .inputs = inputs, .outputs = outputs});
  }
  const std::vector<BuildStep> steps = build_order(model.builder.finish());
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].parts, (std::vector<int64_t>{1000, 2000}));
}

TEST(BuildOrder, DropsGradientsAsTheUpdateReadsThem) {
  Model model;
  const TensorId weight = model.root("weight", Root::parameter);
  const TensorId late = model.made();
  const TensorId early = model.made();
  const TensorId activation = model.made();
  const auto op = [&](Phase phase, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    model.builder.add_op({.name = "aten.neg.default", .phase = phase, .inputs = inputs, .outputs = outputs});
  };
  op(Phase::forward, {weight}, {activation});
  op(Phase::backward, {activation}, {late});
  op(Phase::backward, {activation}, {early});
  op(Phase::update, {weight, early, late}, {});
  op(Phase::update, {late, early, activation}, {});
  const Graph graph = model.builder.finish();
  const std::vector<StorageId> expected = {graph.tensor(early).storage, graph.tensor(late).storage};
  EXPECT_EQ(gradient_order(graph), expected);
}

}  // namespace
}  // namespace forerun
