// What a search tries, what it leaves out and says of it; and memory of replicas that add up gradients.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "api/test_scale.h"
#include "report/scale.h"

namespace forerun {
namespace {

bool any_plan(const ScaleAnswer& answer, const std::function<bool(const scale::Plan&)>& is) {
  return std::any_of(answer.steps.begin(), answer.steps.end(), [&](const scale::Step& s) { return is(s.plan); });
}

bool all_plans(const ScaleAnswer& answer, const std::function<bool(const scale::Plan&)>& are) {
  return !any_plan(answer, [&](const scale::Plan& plan) { return !are(plan); });
}

// What is said beside --search counts, or is refused.
TEST(ScaleSearch, HeedsWhatIsAskedBeside) {
  ScaleQuestion question{.model = "gpt2_small", .gpu = "a100", .gpus = {8}, .search = true, .global_batch = 64};
  question.micro_batch = 2;
  EXPECT_TRUE(all_plans(answer_to(question), [](const scale::Plan& plan) { return plan.micro_batch == 2; }));
  question.micro_batch = 3;
  EXPECT_FALSE(scale_out(question, scale_cost_models()));  // is not what 64 samples can be made of
  question.micro_batch = 0;
  question.setup.checkpointing = Checkpointing::block;
  EXPECT_TRUE(all_plans(answer_to(question), [](const scale::Plan& plan) { return plan.checkpoint; }));
  question.setup.checkpointing = Checkpointing::none;
  question.strategy = "dp";
  const auto refused = scale_out(question, scale_cost_models());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("--explain"), std::string::npos);
}

// What is shown is settled: in order, and as it is said of each by name.
TEST(ScaleSearch, WhatIsShownIsSettled) {
  ScaleQuestion question{.model = "resnet50", .gpu = "a100", .gpus = {8}, .search = true, .global_batch = 512};
  question.shown = 14;
  const ScaleAnswer found = answer_to(question);
  ASSERT_GT(found.steps.size(), 14U);
  question.search = false;
  for (size_t i = 0; i < 14; ++i) {
    const scale::Plan& plan = found.steps[i].plan;
    if (i > 0) {
      EXPECT_LE(found.steps[i - 1].ranked(), found.steps[i].ranked()) << i;
    }
    if (plan.pipeline > 1 || plan.shard > 0) continue;
    question.strategy =
        fmt::format("zero={},mb={}{}", plan.zero, plan.micro_batch, plan.checkpoint ? ",checkpoint" : "");
    const scale::Step asked = answer_to(question).steps.front();
    EXPECT_EQ(asked.time, found.steps[i].time) << question.strategy;
    EXPECT_EQ(asked.memory.total(), found.steps[i].memory.total()) << question.strategy;
  }
}

// Tables are dealt out, blocks of models without tensor pairs run again, and a plan that a replay fits counts.
TEST(ScaleSearch, FindsPlansThatCanBeAskedFor) {
  ScaleQuestion question{.model = "dlrm_kaggle", .gpu = "a100", .gpus = {8}, .search = true, .global_batch = 16384};
  const ScaleAnswer tables = answer_to(question);
  EXPECT_GT(tables.steps.front().plan.experts, 1);
  question = {.model = "resnet50", .gpu = "3090", .gpus = {2}, .search = true, .global_batch = 2048};
  const ScaleAnswer found = answer_to(question);
  EXPECT_TRUE(any_plan(found, [](const scale::Plan& plan) { return plan.checkpoint; }));
  question.search = false;
  for (const char* plan : {"dp,mb=256", "dp,mb=128", "zero1,mb=256"}) {
    question.strategy = plan;
    const scale::Step step = answer_to(question).steps.front();
    if (step.fits) {
      EXPECT_LE(found.steps.front().ranked(), step.ranked()) << plan;
    }
  }
}

TEST(ScaleSearch, SaysWhatIsNearestWhereNothingFits) {
  const ScaleAnswer answer = answer_to(
      {.model = "gpt3_175b", .gpu = "a100", .gpus = {8}, .search = true, .global_batch = 8, .megatron = true});
  EXPECT_TRUE(answer.steps.empty());
  ASSERT_TRUE(answer.nearest);
  EXPECT_GT(answer.nearest->memory.total(), answer.device_memory);
  EXPECT_EQ(answer.considered, answer.feasible + answer.too_large + answer.impossible);
  const std::string text = to_text(answer);
  EXPECT_NE(text.find("No plan fits. The nearest is " + describe(answer.nearest->plan)), std::string::npos) << text;
  EXPECT_NE(to_json(answer).find("\"impossible\":"), std::string::npos);
}

// Of a batch that no cluster will see: refused, or answered at once.
TEST(ScaleSearch, TakesHugeBatches) {
  ScaleQuestion question{.model = "gpt2_small", .gpu = "h100", .gpus = {64}, .search = true, .megatron = true};
  question.global_batch = 16'777'216;
  EXPECT_GT(answer_to(question).steps.front().time, Nanoseconds());
}

// What a replica keeps between micro-batches is its share, from ZeRO 2 on, and told among gradients.
TEST(ScaleMemory, ShardsOfGradientsAreAddedUp) {
  ScaleQuestion question{.model = "gpt2_medium", .gpu = "h100", .gpus = {16}, .default_precision = false};
  question.setup.precision = Precision::bf16;
  question.micro_batch = 2;
  question.global_batch = 128;
  const auto asked = [&](const char* strategy) {
    question.strategy = strategy;
    return answer_to(question).steps.front().memory;
  };
  const scale::MemoryUse zero1 = asked("zero1"), zero2 = asked("zero2"), zero3 = asked("zero3"), dp = asked("dp");
  EXPECT_LT(zero2.gradients.value, zero1.gradients.value / 8);
  EXPECT_LT(zero2.total(), zero1.total());
  EXPECT_LT(zero3.total(), zero2.total());
  const int64_t parameters = 354'823'168;
  EXPECT_GE(dp.gradients.value, parameters * 2);
  question.global_batch = 32;  // one micro-batch
  const scale::MemoryUse once = asked("dp");
  EXPECT_NEAR(gibibytes(dp.parameters), gibibytes(once.parameters), 0.01);
}

// Stacked experts are cut along a dimension that is long enough.
TEST(ScaleMemory, FewExpertsAreShardedAmongManyGpus) {
  ScaleQuestion question{.model = "Mixtral-8x7B-v0.1",
                         .settings = {{"layers", "2"}, {"length", "512"}},
                         .gpu = "h100",
                         .gpus = {256},
                         .strategy = "zero3",
                         .micro_batch = 1,
                         .default_precision = false};
  question.setup.precision = Precision::bf16;
  const ScaleAnswer many = answer_to(question);
  question.gpus = {8};
  const ScaleAnswer few = answer_to(question);
  EXPECT_LT(many.steps[0].memory.states.value, few.steps[0].memory.states.value / 16);
  EXPECT_LT(many.steps[0].memory.total(), few.steps[0].memory.total());
}

// The convention of Megatron's products is that of time: what a causal mask hides is not multiplied by fused attention.
TEST(ScaleMegatron, OptimizersTakeTimeToo) {
  ScaleQuestion question{.model = "gpt2_medium", .gpu = "a100", .gpus = {1}, .megatron = true};
  const scale::Step adam = answer_to(question).steps.front();
  question.default_optimizer = false;
  question.setup.optimizer = {.kind = OptimizerKind::sgd};
  const scale::Step sgd = answer_to(question).steps.front();
  EXPECT_LT(milliseconds(sgd.update), 0.6 * milliseconds(adam.update));
  EXPECT_LT(sgd.memory.states, adam.memory.states);
}

}  // namespace
}  // namespace forerun
