#include "lab/papers/published_plans.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace forerun::scale {
namespace {

Result<std::vector<PublishedPlan>> read(const std::string& source, const std::string& row) {
  auto file = JsonObject::parse("{\"schema\": \"forerun.published-runs/1\", \"sources\": [{\"source\": \"made up\", " +
                                    source + ", \"rows\": [" + row + "]}]}",
                                "runs");
  EXPECT_TRUE(file.ok());
  return published_plans(std::move(*file));
}

constexpr const char* kSource = R"("half": "judge", "stack": "megatron", "flops": "megatron-2021")";
const std::string kRow =
    R"({"model": "GPT", "zoo": "gpt2", "set": "width=2304,layers=24,heads=24,vocab=51200", "gpu": "a100", "gpus": 32,
        "network": "8xhdr", "plan": "tp=1", "micro_batch": 0, "batch": 512, "recompute": 1, "sequence": 2048, )";

TEST(PublishedPlans, ConvertWhatWasPublishedToAStep) {
  auto plans = read(kSource, kRow + "\"step_s\": 3}");
  ASSERT_TRUE(plans) << plans.error().message();
  EXPECT_DOUBLE_EQ(plans->front().step_seconds, 3);
  EXPECT_TRUE(plans->front().judges);
  plans = read(kSource, kRow + "\"tokens_per_second_per_gpu\": 8192}");
  ASSERT_TRUE(plans);
  EXPECT_DOUBLE_EQ(plans->front().step_seconds, 512.0 * 2048 / (8192 * 32));
  // Table 1 of the paper: 1.7 billion parameters, 137 teraFLOP/s a GPU.
  plans = read(kSource, kRow + "\"teraflops_per_gpu\": 137}");
  ASSERT_TRUE(plans);
  EXPECT_NEAR(plans->front().step_seconds, 3.528, 0.001);
}

TEST(PublishedPlans, AreRefusedWhereAHalfStackOrFormulaIsUnknown) {
  EXPECT_FALSE(read(R"("half": "both", "stack": "pytorch")", kRow + "\"step_s\": 3}"));
  EXPECT_FALSE(read(R"("half": "look", "stack": "mine")", kRow + "\"step_s\": 3}"));
  EXPECT_FALSE(read(R"("half": "look", "stack": "megatron")", kRow + "\"teraflops_per_gpu\": 137}"));
  EXPECT_FALSE(read(kSource, kRow + "\"step_s\": 0}"));
}

// What the card in data/scale/README.md promises.
TEST(PublishedPlans, AreManyAndSplitBySource) {
  const auto plans = published_plans();
  ASSERT_TRUE(plans) << plans.error().message();
  EXPECT_GE(plans->size(), 60);
  std::map<std::string, std::set<bool>> halves;
  size_t judging = 0, searched = 0;
  for (const PublishedPlan& plan : *plans) {
    halves[plan.source].insert(plan.judges);
    judging += plan.judges ? 1 : 0;
    searched += plan.search ? 1 : 0;
  }
  EXPECT_GE(halves.size(), 8);
  for (const auto& [source, of_source] : halves) EXPECT_EQ(of_source.size(), 1) << source;
  EXPECT_GE(judging, plans->size() / 3);
  EXPECT_EQ(searched, 10);
}

}  // namespace
}  // namespace forerun::scale
