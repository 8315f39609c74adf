#include "scale/step.h"

#include <gtest/gtest.h>

#include "scale/gradient_exchange.h"
#include "scale/search.h"
#include "scale/test_cluster.h"

namespace forerun::scale {
namespace {

Plan plan_of(int64_t tensor, int64_t data, int64_t pipeline, int64_t micro_batch, int64_t micro_batches) {
  Plan plan;
  plan.tensor = tensor;
  plan.data = data;
  plan.pipeline = pipeline;
  plan.micro_batch = micro_batch;
  plan.micro_batches = micro_batches;
  return plan;
}

Step step_of(const TestCase& test, const Plan& plan) {
  const auto step = test.step(plan);
  EXPECT_TRUE(step) << step.error().message();
  return step ? *step : Step();
}

TEST(Step, OneGpuIsComputationAndUpdate) {
  const TestCase test(1);
  const Step step = step_of(test, plan_of(1, 1, 1, 4, 3));
  EXPECT_EQ(step.time, step.compute + step.update);
  EXPECT_EQ(step.exposed, Nanoseconds());
  EXPECT_NEAR(step.efficiency, 1, 1e-6);
  EXPECT_NEAR(step.samples_per_second * static_cast<double>(step.time.value) * 1e-9, 12, 1e-6);
}

TEST(Step, PartsAddUp) {
  const TestCase test(64);
  for (const Plan& plan : {plan_of(2, 4, 8, 1, 16), plan_of(8, 8, 1, 2, 2), plan_of(1, 32, 2, 4, 8)}) {
    const Step step = step_of(test, plan);
    const Nanoseconds sum = step.compute + step.tensor_exchange + step.bubble + step.exposed + step.update;
    EXPECT_EQ(step.time, sum) << describe(plan);
    EXPECT_EQ(step.parts.total(), step.time) << describe(plan);
    EXPECT_EQ(step.parts.communication, step.exposed + step.tensor_exchange) << describe(plan);
    EXPECT_EQ(step.parts.bubble, step.bubble) << describe(plan);
    EXPECT_GT(step.parts.computation, Nanoseconds()) << describe(plan);
    EXPECT_LE(step.exposed, step.exchange) << describe(plan);
    EXPECT_LT(step.efficiency, 1) << describe(plan);
  }
}

TEST(Step, OverlapHidesGradients) {
  const TestCase test(8);
  Plan plan = plan_of(1, 8, 1, 8, 1);
  const Step overlapped = step_of(test, plan);
  plan.overlap = false;
  const Step after = step_of(test, plan);
  EXPECT_LT(overlapped.exposed, after.exposed);
  EXPECT_EQ(after.exposed, after.exchange);
  EXPECT_LT(overlapped.time, after.time);
}

TEST(Step, ASlowerNetworkIsSlower) {
  TestCase test(64);
  const Plan plan = plan_of(1, 64, 1, 1, 1);
  const Nanoseconds fast = step_of(test, plan).time;
  test.setup.cluster.between.bandwidth /= 20;
  EXPECT_GT(step_of(test, plan).time, fast);
}

TEST(Step, ZeroDividesMemory) {
  const TestCase test(8);
  Plan plan = plan_of(1, 8, 1, 1, 1);
  std::vector<MemoryUse> uses;
  for (plan.zero = 0; plan.zero <= 3; ++plan.zero) uses.push_back(step_of(test, plan).memory);
  EXPECT_EQ(uses[0].parameters.value, 2 * test.model.parameters());
  EXPECT_EQ(uses[0].states.value, 12 * test.model.parameters());
  EXPECT_NEAR(static_cast<double>(uses[1].states.value), 12.0 / 8 * static_cast<double>(test.model.parameters()), 8);
  EXPECT_EQ(uses[1].gradients, uses[0].gradients);
  EXPECT_NEAR(static_cast<double>(uses[2].gradients.value), 2.0 / 8 * static_cast<double>(test.model.parameters()), 8);
  EXPECT_EQ(uses[2].parameters, uses[0].parameters);
  EXPECT_NEAR(static_cast<double>(uses[3].parameters.value), 2.0 / 8 * static_cast<double>(test.model.parameters()), 8);
}

TEST(Step, ZeroThreeExchangesInEveryMicroBatch) {
  const TestCase test(8);
  Plan one = plan_of(1, 8, 1, 1, 1);
  one.zero = 3;
  Plan four = one;
  four.micro_batches = 4;
  EXPECT_EQ(step_of(test, four).exchange, step_of(test, one).exchange * 4);
  one.zero = four.zero = 1;
  EXPECT_EQ(step_of(test, four).exchange, step_of(test, one).exchange);
}

TEST(Step, CheckpointingTradesTimeForMemory) {
  const TestCase test(4);
  Plan plan = plan_of(1, 1, 4, 2, 8);
  const Step plain = step_of(test, plan);
  plan.checkpoint = true;
  const Step checkpointed = step_of(test, plan);
  EXPECT_GT(checkpointed.time, plain.time);
  EXPECT_LT(checkpointed.memory.activations, plain.memory.activations);
  const double ratio = static_cast<double>(checkpointed.compute.value) / static_cast<double>(plain.compute.value);
  EXPECT_GT(ratio, 1.2);
  EXPECT_LT(ratio, 1.4);  // a third more of the layers
}

TEST(Step, ThePipelinesEndHoldsTheTiedEmbeddingToo) {
  TestCase test(2);
  test.model.layers = 2;  // so that the ends decide
  const int64_t words = test.model.vocab * test.model.hidden;
  const Bytes tied = step_of(test, plan_of(1, 1, 2, 1, 4)).memory.parameters;
  EXPECT_GE(tied.value, 2 * (words + test.model.layer_parameters()));
  test.model.tied = false;
  const Bytes apart = step_of(test, plan_of(1, 1, 2, 1, 4)).memory.parameters;
  EXPECT_NEAR(static_cast<double>(apart.value), static_cast<double>(tied.value),
              0.02 * static_cast<double>(tied.value));
}

TEST(Step, InterleavingShrinksTheBubble) {
  const TestCase test(4);
  Plan plan = plan_of(1, 1, 4, 1, 16);
  const Nanoseconds plain = step_of(test, plan).bubble;
  plan.chunks = 2;
  EXPECT_LT(step_of(test, plan).bubble, plain);
}

TEST(Step, ParameterServersAreASharedLink) {
  TestCase test(16);
  test.setup.cluster.node = 1;
  test.setup.cluster.between.bandwidth = 1.25e9;
  Plan plan = plan_of(1, 16, 1, 1, 1);
  plan.exchange = Exchange::servers;
  const Nanoseconds one = step_of(test, plan).time;
  plan.servers = 4;
  const Nanoseconds four = step_of(test, plan).time;
  EXPECT_LT(four, one);
  const Nanoseconds sync = four;
  plan.exchange = Exchange::servers_async;
  EXPECT_LE(step_of(test, plan).time, sync);
}

TEST(Step, SaysWhatCannotBe) {
  const TestCase test(8);
  EXPECT_FALSE(test.step(plan_of(3, 1, 1, 1, 1)));  // 16 heads
  EXPECT_FALSE(test.step(plan_of(1, 1, 5, 1, 1)));  // 16 layers
  Plan plan = plan_of(1, 2, 2, 1, 4);
  plan.zero = 3;
  EXPECT_FALSE(test.step(plan));
}

TEST(Search, RanksWhatFits) {
  const TestCase test(16);
  SearchSpace space;
  space.global_batch = 64;
  space.layers = test.model.layers;
  space.most_tensor = 8;
  space.most_stages = 16;
  const Ranking ranking = *rank_plans(test.costs(), test.setup, space);
  ASSERT_GT(ranking.steps.size(), 10);
  EXPECT_EQ(ranking.considered, static_cast<int64_t>(ranking.steps.size()) + ranking.too_large + ranking.impossible);
  for (size_t i = 0; i < ranking.steps.size(); ++i) {
    EXPECT_TRUE(ranking.steps[i].fits);
    EXPECT_EQ(ranking.steps[i].plan.gpus(), 16);
    EXPECT_EQ(ranking.steps[i].plan.global_batch(), 64);
    if (i > 0) {
      EXPECT_LE(ranking.steps[i - 1].time, ranking.steps[i].time);
    }
  }
}

TEST(Search, WhatDoesNotFitIsLeftOut) {
  TestCase test(16);
  test.setup.cluster.gpu.memory = Bytes(int64_t{4} << 30);
  SearchSpace space{.global_batch = 64, .layers = test.model.layers, .most_tensor = 8, .most_stages = 16};
  const Ranking ranking = *rank_plans(test.costs(), test.setup, space);
  EXPECT_GT(ranking.too_large, 0);
  for (const Step& step : ranking.steps) EXPECT_LE(step.memory.total(), test.setup.cluster.gpu.memory);
}

}  // namespace
}  // namespace forerun::scale
