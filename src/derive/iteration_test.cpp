#include "derive/iteration.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "derive/dispatch.h"
#include "graph/forward_builder.h"

namespace forerun::derive {
namespace {

// Two linear layers with a ReLU between, 8 samples of 16 features, 10 classes.
Graph two_layer_model() {
  ForwardBuilder b;
  const TensorId x = b.input("x", {8, 16});
  const TensorId w1 = b.parameter("fc1.weight", {32, 16});
  const TensorId b1 = b.parameter("fc1.bias", {32});
  const TensorId w2 = b.parameter("fc2.weight", {10, 32});
  const TensorId b2 = b.parameter("fc2.bias", {10});
  b.result(b.linear(b.relu(b.linear(x, w1, b1)), w2, b2));
  return *b.finish();
}

Graph derived(const Graph& forward, const TrainingSetup& setup = {}) {
  Result<Graph> graph = derive_iteration(forward, {.kind = InputKind::flat}, setup);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  const Status status = verify(*graph);
  EXPECT_TRUE(status.ok()) << status.error().message();
  return std::move(*graph);
}

std::vector<std::string> names(const Graph& graph, Phase phase) {
  std::vector<std::string> result;
  for (const Op& op : graph.ops()) {
    if (op.phase == phase) result.push_back(graph.name(op).substr(5));
  }
  return result;
}

int64_t count(const Graph& graph, std::string_view name) {
  return std::count_if(graph.ops().begin(), graph.ops().end(), [&](const Op& op) { return graph.name(op) == name; });
}

using Names = std::vector<std::string>;

TEST(Iteration, AResultWithoutDimensionsIsTheLoss) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {8, 16});
  const TensorId y = b.linear(x, b.parameter("weight", {4, 16}), std::nullopt);
  b.result(b.opaque("aten.mse_loss.default", {y, b.input("target", {8, 4})}, {{Shape{}, DType::float32}}).front());
  const Graph model = *b.finish();
  const Graph graph = derived(model);
  EXPECT_EQ(names(graph, Phase::forward), (Names{"t.default", "mm.default", "mse_loss.default"}));
  EXPECT_EQ(names(graph, Phase::backward), (Names{"ones_like.default", "mse_loss_backward.default", "t.default",
                                                  "mm.default", "t.default", "t.default", "detach.default"}));
  const Graph half = derived(model, {.precision = Precision::amp_bf16});
  const auto forward = names(half, Phase::forward);
  EXPECT_EQ(forward.back(), "mse_loss.default");
  EXPECT_EQ(forward[forward.size() - 2], "_to_copy.default") << "the loss is taken in float32";
}

TEST(Iteration, DispatchesWhatPyTorchDoes) {
  const Graph graph = derived(two_layer_model());
  EXPECT_EQ(names(graph, Phase::forward),
            (Names{"t.default", "addmm.default", "relu.default", "detach.default", "t.default", "addmm.default",
                   "_log_softmax.default", "detach.default", "nll_loss_forward.default"}));
  EXPECT_EQ(
      names(graph, Phase::backward),
      (Names{"ones_like.default", "nll_loss_backward.default", "detach.default", "_log_softmax_backward_data.default",
             // second layer: gradient of the input, of the weight, of the bias
             "t.default", "mm.default", "t.default", "mm.default", "t.default", "sum.dim_IntList", "view.default",
             "detach.default", "t.default", "detach.default",
             // ReLU, then the first layer, whose input needs no gradient
             "detach.default", "threshold_backward.default", "t.default", "mm.default", "t.default", "sum.dim_IntList",
             "view.default", "detach.default", "t.default", "detach.default"}));
  EXPECT_EQ(names(graph, Phase::update), (Names{"_foreach_add_.List"}));
}

TEST(Iteration, LinksBackwardOpsToForwardOps) {
  const Graph graph = derived(two_layer_model());
  uint32_t relu = 0;
  for (const Op& op : graph.ops()) {
    if (graph.name(op) == "aten.relu.default") relu = op.sequence;
  }
  ASSERT_GT(relu, 0U);
  const auto found = std::find_if(graph.ops().begin(), graph.ops().end(),
                                  [&](const Op& op) { return graph.name(op) == "aten.threshold_backward.default"; });
  ASSERT_NE(found, graph.ops().end());
  EXPECT_EQ(found->sequence, relu);
  EXPECT_EQ(graph.names()[found->autograd_node], "ReluBackward0");
}

// An activation lives until the backward op that needs it has run; a gradient lives on.
TEST(Iteration, FreesStoragesWhereTheLastHolderLetsGo) {
  const Graph graph = derived(two_layer_model());
  OpId made, used;
  StorageId hidden;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (graph.name(op) == "aten.relu.default") {
      made = OpId(i);
      hidden = graph.tensor(graph.outputs(op)[0]).storage;
    }
    if (graph.name(op) == "aten.threshold_backward.default") used = OpId(i);
  }
  const OpId freed = graph.storage(hidden).freed_before;
  ASSERT_TRUE(freed.valid());
  EXPECT_GT(freed, used);
  EXPECT_LE(freed.value, used.value + 2);
  EXPECT_LT(made, used);
  int64_t kept_gradients = 0;
  for (const Op& op : graph.ops()) {
    if (graph.name(op) != "aten.detach.default" || op.sequence != 0xFFFFFFFEU) continue;
    EXPECT_FALSE(graph.storage(graph.tensor(graph.outputs(op)[0]).storage).freed_before.valid());
    ++kept_gradients;
  }
  EXPECT_EQ(kept_gradients, 4);
}

TEST(Iteration, AutocastCastsEachWeightOnce) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {8, 16});
  const TensorId w = b.parameter("w", {16, 16});
  b.result(b.linear(b.linear(x, w, std::nullopt), w, std::nullopt));  // the same weight twice
  const Graph graph = derived(*b.finish(), {.precision = Precision::amp_bf16});
  const auto forward = names(graph, Phase::forward);
  // weight, input, and the log-probabilities back to float32 for the loss
  EXPECT_EQ(std::count(forward.begin(), forward.end(), "_to_copy.default"), 3);
  for (const Op& op : graph.ops()) {
    if (graph.name(op) != "aten.mm.default") continue;
    for (const TensorId id : graph.inputs(op)) EXPECT_EQ(graph.tensor(id).dtype, DType::bfloat16);
  }
  // Both uses add up before the one accumulation, in float32.
  EXPECT_EQ(count(graph, "aten.add.Tensor"), 1);
}

TEST(Iteration, ReshapesOfTransposedTensorsCopy) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {4, 6, 8});
  const TensorId w = b.parameter("w", {5, 8});
  const TensorId bias = b.parameter("b", {5});
  b.result(b.linear(b.transpose(x, 0, 1), w, bias));
  const Graph copied = derived(*b.finish());
  EXPECT_EQ(count(copied, "aten.clone.default"), 1);
  EXPECT_EQ(count(copied, "aten.addmm.default"), 0);  // the bias is added by itself

  ForwardBuilder c;
  const TensorId y = c.input("x", {4, 6, 8});
  const TensorId v = c.parameter("w", {5, 8});
  c.result(c.linear(y, v, c.parameter("b", {5})));
  const Graph plain = derived(*c.finish());
  EXPECT_EQ(count(plain, "aten.clone.default"), 0);
  EXPECT_EQ(count(plain, "aten.addmm.default"), 1);
}

struct OptimizerCase {
  OptimizerKind kind;
  OptimizerImpl impl;
  double momentum;
  double weight_decay;
  Names expected;         // update phase; of the first parameter for for-loops
  int64_t state_tensors;  // for each of the four parameters, steps included
};

class Optimizers : public testing::TestWithParam<OptimizerCase> {};

TEST_P(Optimizers, DispatchWhatPyTorchDoes) {
  const OptimizerCase& c = GetParam();
  const TrainingSetup setup = {
      .optimizer = {.kind = c.kind, .impl = c.impl, .momentum = c.momentum, .weight_decay = c.weight_decay}};
  const Graph graph = derived(two_layer_model(), setup);
  Names update = names(graph, Phase::update);
  if (c.impl == OptimizerImpl::forloop) {
    ASSERT_EQ(update.size(), 4 * c.expected.size());
    update.resize(c.expected.size());
  }
  EXPECT_EQ(update, c.expected);
  int64_t states = 0;
  for (const Storage& storage : graph.storages()) states += storage.root == Root::state ? 1 : 0;
  EXPECT_EQ(states, 4 * c.state_tensors);
}

const std::string kRead = "_local_scalar_dense.default";

INSTANTIATE_TEST_SUITE_P(
    All, Optimizers,
    testing::Values(
        OptimizerCase{OptimizerKind::sgd,
                      OptimizerImpl::forloop,
                      0.9,
                      1e-4,
                      {"add.Tensor", "mul_.Tensor", "add_.Tensor", "add_.Tensor"},
                      1},
        OptimizerCase{OptimizerKind::sgd,
                      OptimizerImpl::foreach,
                      0.9,
                      1e-4,
                      {"_foreach_add.List", "_foreach_mul_.Scalar", "_foreach_add_.List", "_foreach_add_.List"},
                      1},
        OptimizerCase{OptimizerKind::sgd, OptimizerImpl::fused, 0.9, 0, {"_fused_sgd_.default"}, 1},
        OptimizerCase{OptimizerKind::adam,
                      OptimizerImpl::forloop,
                      0,
                      0,
                      {"add_.Tensor", "lerp_.Scalar", "mul_.Tensor", "addcmul_.default", kRead, "sqrt.default",
                       "div.Tensor", "add_.Tensor", "addcdiv_.default"},
                      3},
        OptimizerCase{OptimizerKind::adamw,
                      OptimizerImpl::foreach,
                      0,
                      0.01,
                      {"lift_fresh.default", "_foreach_add_.Tensor", "_foreach_mul_.Scalar", "_foreach_lerp_.Scalar",
                       "_foreach_mul_.Scalar", "_foreach_addcmul_.Scalar", kRead, kRead, kRead, kRead, kRead, kRead,
                       kRead, kRead, "_foreach_sqrt.default", "_foreach_div_.ScalarList", "_foreach_add_.Scalar",
                       "_foreach_addcdiv_.ScalarList"},
                      3},
        OptimizerCase{
            OptimizerKind::adam, OptimizerImpl::fused, 0, 0, {"_foreach_add_.Scalar", "_fused_adam_.default"}, 3},
        OptimizerCase{
            OptimizerKind::adamw, OptimizerImpl::fused, 0, 0, {"_foreach_add_.Scalar", "_fused_adamw_.default"}, 3},
        OptimizerCase{
            OptimizerKind::rmsprop,
            OptimizerImpl::forloop,
            0,
            0,
            {"add_.Tensor", "mul_.Tensor", "addcmul_.default", "sqrt.default", "add_.Tensor", "addcdiv_.default"},
            2},
        OptimizerCase{OptimizerKind::rmsprop,
                      OptimizerImpl::foreach,
                      0,
                      0,
                      {"lift_fresh.default", "_foreach_add_.Tensor", "_foreach_mul_.Scalar", "_foreach_addcmul_.Scalar",
                       "_foreach_sqrt.default", "_foreach_add_.Scalar", "_foreach_addcdiv_.Scalar"},
                      2},
        OptimizerCase{OptimizerKind::adagrad,
                      OptimizerImpl::forloop,
                      0,
                      0,
                      {"add_.Tensor", kRead, "addcmul_.default", "sqrt.default", "add_.Tensor", "addcdiv_.default"},
                      2}));

TEST(Iteration, CarriesOpaqueOpsWithTheirGradient) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {8, 16});
  const TensorId h = b.linear(x, b.parameter("w", {16, 16}), std::nullopt);
  b.result(b.opaque("onnx.Mystery", {h}, {{{8, 10}, DType::float32}}).front());
  const Graph graph = derived(*b.finish());
  EXPECT_EQ(count(graph, "onnx.Mystery"), 1);
  EXPECT_EQ(count(graph, "onnx.Mystery_backward"), 1);
  EXPECT_EQ(count(graph, "aten.mm.default"), 2);  // forward, and the weight's gradient behind the opaque op
}

// cuDNN's batch norm counts elements in 32 bits.
TEST(Iteration, NormsTooManyElementsForCudnnNatively) {
  const auto normed = [](int64_t batch) {
    ForwardBuilder b;
    const TensorId x = b.input("x", {batch, 8, 128, 128});
    const TensorId y = b.batch_norm(x, b.parameter("weight", {8}), b.parameter("bias", {8}), b.buffer("mean", {8}),
                                    b.buffer("variance", {8}), std::nullopt);
    b.result(b.flatten(b.adaptive_avg_pool2d(y, {1, 1}), 1));
    return derived(*b.finish());
  };
  EXPECT_EQ(count(normed(16383), "aten.cudnn_batch_norm.default"), 1);
  const Graph large = normed(16384);  // 2^31 elements
  EXPECT_EQ(count(large, "aten.native_batch_norm.default"), 1);
  EXPECT_EQ(count(large, "aten.native_batch_norm_backward.default"), 1);
}

TEST(Iteration, RefusesWhatCannotBeTrained) {
  ForwardBuilder nothing;
  nothing.result(nothing.relu(nothing.input("x", {2, 3})));
  const auto untrained = derive_iteration(*nothing.finish(), {}, {});
  ASSERT_FALSE(untrained.ok());
  EXPECT_NE(untrained.error().message().find("no parameter"), std::string::npos);

  ForwardBuilder silent;
  silent.relu(silent.parameter("w", {2, 3}));
  ASSERT_FALSE(derive_iteration(*silent.finish(), {}, {}).ok());

  const auto large = derive_iteration(two_layer_model(), {}, {}, {.most_ops = 2});
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().message().find("3 ops; at most 2"), std::string::npos) << large.error().message();

  const auto odd = derive_iteration(two_layer_model(), {}, {.optimizer = {.kind = OptimizerKind::other}});
  ASSERT_FALSE(odd.ok());
}

// Element counts of what an op makes may be far beyond those of the model's own tensors.
TEST(DeriveIteration, RefusesWhatCannotBeCounted) {
  ForwardBuilder b;
  const TensorId x = b.input("x", {int64_t{1} << 30, 1 << 10});
  const TensorId w = b.parameter("fc.weight", {1 << 14, 1 << 10});
  const TensorId bias = b.parameter("fc.bias", {1 << 14});
  TensorId y = b.linear(x, w, bias);
  for (int i = 0; i < 200; ++i) y = b.relu(y);
  b.result(y);
  const Result<Graph> forward = b.finish();
  ASSERT_TRUE(forward.ok()) << forward.error().message();
  const Result<Graph> graph = derive_iteration(*forward, {.kind = InputKind::flat}, {});
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message().find("PiB"), std::string::npos) << graph.error().message();
  EXPECT_GT(element_count({int64_t{1} << 40, int64_t{1} << 40, 3}), int64_t{1} << 50);
}

TEST(DispatchTargets, FollowTheCapabilityAndNotTheName) {
  Device h800;
  h800.name = "NVIDIA H800";
  h800.compute_capability = 90;
  EXPECT_TRUE(target_of(h800).cudnn_attention);
  Device ada;
  ada.name = "not an H100";
  ada.compute_capability = 89;
  EXPECT_FALSE(target_of(ada).cudnn_attention);
  Device consumer;  // Blackwell's boards for desktops
  consumer.compute_capability = 120;
  EXPECT_FALSE(target_of(consumer).cudnn_attention);
}

TEST(DispatchTargets, SayWhatTheyDoNotKnow) {
  Device board;
  board.vendor = "NVIDIA";
  EXPECT_NE(target_caveat(board).find("compute_capability"), std::string::npos);
  board.compute_capability = 80;
  EXPECT_EQ(target_caveat(board), "");
  Device other;
  other.vendor = "AMD";
  EXPECT_EQ(target_caveat(other), "");
}

}  // namespace
}  // namespace forerun::derive
