#include "scale/transformer_cost.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "scale/test_cluster.h"
#include "zoo/zoo.h"

namespace forerun::scale {
namespace {

TEST(Transformer, CountsParametersAsTheZooDoes) {
  for (const char* name : {"gpt2_small", "gpt2_xl", "llama2_7b", "llama3_8b", "meta-llama/Llama-3.1-405B",
                           "mistralai/Mistral-7B-v0.3", "Qwen/Qwen2.5-7B", "Qwen/Qwen3-8B"}) {
    const auto model = zoo::build(name, {{"batch", "1"}});
    ASSERT_TRUE(model);
    const auto shape = transformer_of(*model);
    ASSERT_TRUE(shape) << name;
    EXPECT_EQ(shape->parameters(), model->forward.parameter_count()) << name;
  }
  for (const char* name : {"resnet18", "mistralai/Mixtral-8x7B-v0.1", "google/gemma-2-9b", "deepseek-ai/DeepSeek-V3"}) {
    EXPECT_FALSE(transformer_of(*zoo::build(name, {{"batch", "1"}}))) << name;
  }
}

TEST(TransformerCost, SharedLayersAreFasterButNotByAsMuch) {
  const TestCase test(8);
  const auto alone = test.costs()({8, 1});
  const auto shared = test.costs()({8, 4});
  ASSERT_TRUE(alone && shared);
  const Block& one = alone->blocks[1];
  const Block& four = shared->blocks[1];
  EXPECT_LT(four.forward, one.forward);
  EXPECT_GT(four.forward * 4, one.forward);
  EXPECT_EQ(four.parameters, one.parameters / 4);
  EXPECT_LT(four.saved, one.saved);
  EXPECT_EQ(one.forward_exchange, Nanoseconds());
  EXPECT_GT(four.forward_exchange, Nanoseconds());
}

TEST(TransformerCost, AnOddVocabularyIsSlow) {
  TestCase test(1);
  test.model.vocab = 50304;
  const Nanoseconds even = test.costs()({4, 1})->blocks.back().forward;
  test.model.vocab = 50257;
  EXPECT_GT(test.costs()({4, 1})->blocks.back().forward, even);
  EXPECT_EQ(padded_vocab(50257, 1), 50257);
  EXPECT_EQ(padded_vocab(50257, 8) % (128 * 8), 0);
}

// Wider sums of gradients move more bytes in the backward pass, and for a layer of many weights and few tokens it shows.
TEST(TransformerCost, GradientsAreAddedUp) {
  const TestCase test(8);
  const auto with_sums_of = [&](int64_t bytes) {
    const auto costs = transformer_costs(test.model, test.setup.cluster, test.setup.efficiency, {.gradient = bytes},
                                         {.micro_batch = 8});
    CHECK(costs.ok(), costs.error().message());
    return costs->blocks[1];
  };
  const Block half = with_sums_of(2), whole = with_sums_of(4);
  EXPECT_EQ(half.forward, whole.forward);
  EXPECT_LT(half.backward, whole.backward);
  EXPECT_LT(half.weight_gradients, whole.weight_gradients);
  const double bytes = 4.0 * static_cast<double>(test.model.layer_parameters());
  const double most = bytes / (0.8 * test.setup.cluster.gpu.memory_bandwidth) * 1e9;
  EXPECT_LT(static_cast<double>((whole.backward - half.backward).value), most);
}

TEST(Efficiency, WritesWhatItReads) {
  Efficiency e;
  e.source = "a test";
  e.gemm = 0.71;
  e.fused_attention = false;
  e.links.within = {30, 2, 0.7};
  e.links.between = {30, 0, 0.85};
  e.shapes = {{1024, 2048, 2, 1.1, 0.9}};
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "efficiency.json";
  std::ofstream(file) << to_json(e);
  const auto read = read_efficiency(file);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(to_json(*read), to_json(e));
  std::ofstream(file) << "{\"format\": \"other\"}";
  EXPECT_FALSE(read_efficiency(file));
  std::filesystem::remove(file);
}

TEST(Efficiency, CorrectionsFadeWithinAnOctave) {
  Efficiency e;
  e.shapes = {{1024, 2048, 2, 1.2, 0.8}};
  EXPECT_NEAR(factors_at(e, 1024, 2048, 2).layer, 1.2, 0.01);
  EXPECT_NEAR(factors_at(e, 1024, 2048, 2).ends, 0.8, 0.01);
  EXPECT_NEAR(factors_at(e, 4096, 8192, 8).layer, 1, 0.001);
}

}  // namespace
}  // namespace forerun::scale
