// How a model is trained, beside its precision and optimizer: checkpointing, accumulation, adapters, frozen weights, clipping.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "derive/optimizer.h"
#include "derive/test_blocks.h"

namespace forerun::derive {
namespace {

constexpr int64_t kWidth = kBlockWidth;

Graph trained(const TrainingSetup& setup, int blocks = 3) { return trained_blocks(setup, blocks, UpBias::without); }

int64_t count(const Graph& graph, std::string_view name, Phase phase) {
  return std::count_if(graph.ops().begin(), graph.ops().end(),
                       [&](const Op& op) { return op.phase == phase && graph.name(op) == name; });
}

// Bytes that live together at most, roots left out.
int64_t most_alive(const Graph& graph) {
  std::vector<bool> made(graph.storages().size());
  std::vector<std::vector<StorageId>> dying(graph.op_count() + 1);
  for (uint32_t id = 0; id < graph.storages().size(); ++id) {
    const OpId freed = graph.storage(StorageId(id)).freed_before;
    if (freed.valid()) dying[freed.value].push_back(StorageId(id));
  }
  int64_t alive = 0;
  int64_t most = 0;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    for (const StorageId id : dying[i]) alive -= made[id.value] ? graph.storage(id).bytes.value : 0;
    for (const TensorId output : graph.outputs(graph.ops()[i])) {
      const StorageId id = graph.tensor(output).storage;
      if (made[id.value] || graph.storage(id).root != Root::none) continue;
      made[id.value] = true;
      alive += graph.storage(id).bytes.value;
    }
    most = std::max(most, alive);
  }
  return most;
}

int64_t state_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Storage& storage : graph.storages()) bytes += storage.root == Root::state ? storage.bytes.value : 0;
  return bytes;
}

TEST(Checkpointing, RunsEachBlockTwiceAndStopsBeforeItsLastProduct) {
  const Graph plain = trained({});
  const Graph again = trained({.checkpointing = Checkpointing::block});
  EXPECT_EQ(count(plain, "aten.gelu.default", Phase::backward), 0);
  EXPECT_EQ(count(again, "aten.gelu.default", Phase::backward), 3);
  // Of the two products of a block the first runs again: the second only keeps its operands.
  EXPECT_EQ(count(again, "aten.mm.default", Phase::backward), count(plain, "aten.mm.default", Phase::backward) + 3);
  EXPECT_EQ(count(again, "aten.mm.default", Phase::forward), count(plain, "aten.mm.default", Phase::forward));
  EXPECT_EQ(count(again, "aten.gelu_backward.default", Phase::backward), 3);
  EXPECT_EQ(again.parameters().size(), plain.parameters().size());
}

TEST(Checkpointing, KeepsLessTheMoreBlocksThereAre) {
  const auto growth = [](Checkpointing how) {
    return most_alive(trained({.checkpointing = how}, 12)) - most_alive(trained({.checkpointing = how}, 4));
  };
  EXPECT_LT(growth(Checkpointing::block), growth(Checkpointing::none));
  EXPECT_LT(growth(Checkpointing::selective), growth(Checkpointing::none));
  EXPECT_LT(growth(Checkpointing::block), growth(Checkpointing::selective));
}

TEST(Checkpointing, SelectiveRunsNoProductAgain) {
  const Graph plain = trained({});
  const Graph again = trained({.checkpointing = Checkpointing::selective});
  EXPECT_EQ(count(again, "aten.mm.default", Phase::backward), count(plain, "aten.mm.default", Phase::backward));
  EXPECT_EQ(count(again, "aten.gelu.default", Phase::backward), 3);
}

TEST(Checkpointing, GivesEveryParameterItsGradient) {
  for (const Checkpointing how : {Checkpointing::block, Checkpointing::selective}) {
    const Graph graph = trained({.optimizer = {.impl = OptimizerImpl::foreach}, .checkpointing = how});
    const auto found = std::find_if(graph.ops().begin(), graph.ops().end(),
                                    [&](const Op& op) { return graph.name(op) == "aten._foreach_add_.List"; });
    ASSERT_NE(found, graph.ops().end());
    EXPECT_EQ(graph.inputs(*found).size(), 2 * graph.parameters().size());
  }
}

TEST(Checkpointing, IsRefusedWhereThereAreNoBlocks) {
  const Result<Graph> graph =
      derive_iteration(blocks_model(0), {.kind = InputKind::tokens}, {.checkpointing = Checkpointing::block});
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message().find("no blocks"), std::string::npos) << graph.error().message();
}

TEST(Accumulation, RepeatsThePassesAndUpdatesOnce) {
  const Graph once = trained({});
  const Graph thrice = trained({.accumulate = 3});
  for (const char* name : {"aten.mm.default", "aten.gelu.default", "aten._log_softmax.default"}) {
    EXPECT_EQ(count(thrice, name, Phase::forward), 3 * count(once, name, Phase::forward)) << name;
  }
  EXPECT_EQ(count(thrice, "aten._foreach_add_.List", Phase::update),
            count(once, "aten._foreach_add_.List", Phase::update));
  // The second and third gradient of each parameter are added to the first.
  EXPECT_EQ(count(thrice, "aten.add_.Tensor", Phase::backward), 2 * static_cast<int64_t>(once.parameters().size()));
}

TEST(Lora, TrainsAdaptersAlone) {
  const Graph graph = trained({.lora = {.rank = 4, .targets = {"up"}}});
  EXPECT_EQ(graph.parameters().size(), 6U);  // two in each of three blocks
  EXPECT_EQ(graph.parameter_count(), blocks_model(3).parameter_count() + 3 * (4 * kWidth + 4 * 4 * kWidth));
  EXPECT_EQ(count(graph, "aten.embedding_dense_backward.default", Phase::backward), 0);
}

TEST(Lora, FrozenLayersBelowTheFirstAdapterGetNoGradient) {
  const Graph all = trained({});
  const Graph adapted = trained({.lora = {.rank = 4, .targets = {"down"}}}, 1);
  EXPECT_EQ(count(adapted, "aten.gelu_backward.default", Phase::backward), 0);
  EXPECT_LT(count(adapted, "aten.mm.default", Phase::backward), count(all, "aten.mm.default", Phase::backward));
}

TEST(Lora, NamesTheLayersThereAre) {
  const Result<Graph> graph =
      derive_iteration(blocks_model(1), {.kind = InputKind::tokens}, {.lora = {.rank = 4, .targets = {"q_proj"}}});
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message().find("down, head, up"), std::string::npos) << graph.error().message();
}

TEST(Freeze, LeavesParametersOutOfTheUpdate) {
  const Graph graph = trained({.freeze = {"embed", "layers.0"}});
  EXPECT_EQ(graph.parameters().size(), 5U);  // layers.1, layers.2, head
  const Result<Graph> none = derive_iteration(blocks_model(1), {.kind = InputKind::tokens}, {.freeze = {"weight"}});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message().find("frozen"), std::string::npos);
}

TEST(Precision, Bfloat16WeightsHalveParametersGradientsAndState) {
  const TrainingSetup wide = {.optimizer = {.kind = OptimizerKind::adamw}};
  TrainingSetup narrow = wide;
  narrow.precision = Precision::bf16;
  const auto parameter_bytes = [](const Graph& graph) {
    int64_t bytes = 0;
    for (const TensorId id : graph.parameters()) bytes += graph.storage(graph.tensor(id).storage).bytes.value;
    return bytes;
  };
  const Graph in_wide = trained(wide);
  const Graph in_narrow = trained(narrow);
  EXPECT_EQ(2 * parameter_bytes(in_narrow), parameter_bytes(in_wide));
  const int64_t steps = 4 * static_cast<int64_t>(in_wide.parameters().size());
  EXPECT_EQ(2 * (state_bytes(in_narrow) - steps), state_bytes(in_wide) - steps);
}

TEST(Precision, Float16AutocastScalesTheLossAndWaitsForTheFinding) {
  const Graph graph = trained({.precision = Precision::amp_fp16});
  EXPECT_EQ(count(graph, "aten._amp_foreach_non_finite_check_and_unscale_.default", Phase::update), 1);
  EXPECT_EQ(count(graph, "aten._amp_update_scale_.default", Phase::update), 1);
  EXPECT_EQ(count(graph, "aten._local_scalar_dense.default", Phase::update), 1);
  for (const Op& op : graph.ops()) {
    if (graph.name(op) != "aten.mm.default") continue;
    for (const TensorId id : graph.inputs(op)) EXPECT_EQ(graph.tensor(id).dtype, DType::float16);
  }
}

TEST(Optimizers, KeepTheStateTheirAuthorsSay) {
  const auto state = [](OptimizerKind kind) { return state_bytes(trained({.optimizer = {.kind = kind}})); };
  int64_t elements = 0;
  const Graph plain = trained({});
  for (const TensorId id : plain.parameters()) elements += plain.element_count(id);
  EXPECT_EQ(state(OptimizerKind::lion), 4 * elements);
  // Two bytes an element and two float32 scales for each 256.
  EXPECT_EQ(state(OptimizerKind::adamw_8bit), 2 * elements + 2 * 4 * elements / 256);
  EXPECT_LT(state(OptimizerKind::adafactor), elements);
  // Muon has one moment of the six matrices, AdamW two of embedding and head.
  EXPECT_EQ(state(OptimizerKind::muon), 4 * (6 * 4 * kWidth * kWidth) + 2 * (2 * 4 * 100 * kWidth + 4));
}

TEST(Clipping, TakesTheNormOfAllGradients) {
  const Graph graph = trained({.clip_norm = 1});
  EXPECT_EQ(count(graph, "aten._foreach_norm.Scalar", Phase::update), 1);
  EXPECT_EQ(count(graph, "aten._foreach_mul_.Tensor", Phase::update), 1);
}

TEST(MovingAverage, HoldsACopyOfEveryWeight) {
  int64_t elements = 0;
  const Graph plain = trained({});
  for (const TensorId id : plain.parameters()) elements += plain.element_count(id);
  EXPECT_EQ(state_bytes(trained({.ema = true})), 4 * elements + 8);
}

TEST(RunOptions, FlashAttentionTakesHalfPrecisionAlone) {
  const auto refused = derive_iteration(blocks_model(1), {.kind = InputKind::tokens}, {.attention = Attention::flash});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("half precision"), std::string::npos) << refused.error().message();
}

}  // namespace
}  // namespace forerun::derive
