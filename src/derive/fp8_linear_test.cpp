#include "derive/fp8_linear.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "derive/test_blocks.h"
#include "derive/work.h"

namespace forerun::derive::fp8_test {
namespace {

TrainingSetup in_fp8(Checkpointing checkpointing = Checkpointing::none) {
  return {.precision = Precision::amp_fp8, .checkpointing = checkpointing};
}

Graph trained(const TrainingSetup& setup, int blocks = 3) { return trained_blocks(setup, blocks, UpBias::with); }

int64_t count(const Graph& graph, std::string_view name, Phase phase) {
  return std::count_if(graph.ops().begin(), graph.ops().end(),
                       [&](const Op& op) { return op.phase == phase && graph.name(op) == name; });
}

constexpr const char* kProduct = "transformer_engine.fp8_gemm.default";
constexpr const char* kCast = "transformer_engine.fp8_cast_transpose.default";
constexpr const char* kCastAndSum = "transformer_engine.fp8_cast_transpose_dbias.default";

// Two linear layers a block, one of them with a bias; the head stays in bfloat16.
TEST(Fp8Linear, CastsAndMultipliesOnceForwardAndTwiceBackward) {
  const Graph graph = trained(in_fp8());
  EXPECT_EQ(count(graph, kProduct, Phase::forward), 6);
  EXPECT_EQ(count(graph, kCast, Phase::forward), 12) << "of input and weight";
  EXPECT_EQ(count(graph, kProduct, Phase::backward), 12);
  EXPECT_EQ(count(graph, kCast, Phase::backward) + count(graph, kCastAndSum, Phase::backward), 6);
  EXPECT_EQ(count(graph, kCastAndSum, Phase::backward), 3);
}

// The same products as in bfloat16, in other units.
TEST(Fp8Linear, HasAsManyFlopsAsBfloat16) {
  const auto flops = [](const Graph& graph) {
    double sum = 0;
    for (const Op& op : graph.ops()) {
      const OpWork work = work_of(graph, op);
      if (work.gemm_count > 0) sum += work.flops.value;
    }
    return sum;
  };
  EXPECT_DOUBLE_EQ(flops(trained(in_fp8())), flops(trained({.precision = Precision::amp_bf16})));
}

TEST(Fp8Linear, GivesEveryParameterItsGradient) {
  const Graph graph = trained(in_fp8());
  const Graph wide = trained({.precision = Precision::amp_bf16});
  const auto gradients = [](const Graph& of) {
    std::vector<int64_t> sizes;
    std::vector<bool> seen(of.storages().size());
    for (const Op& op : of.ops()) {
      if (op.phase != Phase::backward) continue;
      for (const TensorId id : of.outputs(op)) {
        const StorageId at = of.tensor(id).storage;
        const Storage& storage = of.storage(at);
        if (storage.root != Root::none || storage.freed_before.valid() || seen[at.value]) continue;
        seen[at.value] = true;
        sizes.push_back(storage.bytes.value);
      }
    }
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  };
  EXPECT_EQ(gradients(graph), gradients(wide));
}

TEST(Fp8Linear, RunsAgainWhereBlocksAreCheckpointed) {
  const Graph graph = trained(in_fp8(Checkpointing::block));
  EXPECT_EQ(count(graph, kProduct, Phase::forward), 6);
  EXPECT_EQ(count(graph, kProduct, Phase::backward), 12 + 6) << "the last layer of a block keeps what it cast";
}

TEST(Fp8Linear, IsRefusedBesideAdaptersAndFewBits) {
  TrainingSetup setup = in_fp8();
  setup.lora.rank = 4;
  const auto graph = derive_iteration(blocks_model(1, UpBias::with), {.kind = InputKind::tokens}, setup);
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().message().find("adapters"), std::string::npos);
}

}  // namespace
}  // namespace forerun::derive::fp8_test
