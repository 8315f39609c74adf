#include "scale/step.h"

#include <gtest/gtest.h>

#include "scale/gradient_exchange.h"
#include "scale/search.h"
#include "scale/stages.h"
#include "scale/step_picture.h"
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

// Each stage but the last waits for what it sends forward, each but the first for what it sends back, in every micro-batch.
TEST(Step, StagesOfMegatronWaitForWhatTheySend) {
  TestCase test(16);
  const Plan plan = plan_of(8, 1, 2, 1, 32), alone = plan_of(8, 2, 1, 1, 16);
  const Nanoseconds beside = step_of(test, plan).time, single = step_of(test, alone).time;
  test.setup.megatron = true;
  EXPECT_GT(step_of(test, plan).time, beside);
  EXPECT_EQ(step_of(test, alone).time, single);
}

// Of ZeRO 3 in PyTorch; replicas meet once.
TEST(Step, BlocksWaitForOtherNodes) {
  TestCase test(64);
  Plan plan = plan_of(1, 64, 1, 8, 1);
  plan.zero = 3;
  const Step waits = step_of(test, plan);
  test.setup.cluster.node = 64;
  test.setup.cluster.between = test.setup.cluster.within;
  EXPECT_GT(waits.time, step_of(test, plan).time);
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

// Times are whole nanoseconds: what would run over is refused, and a word says why.
TEST(Step, StepsOfYearsAreRefused) {
  const TestCase test(16);
  for (int64_t batches = int64_t{1} << 20; batches <= int64_t{1} << 40; batches *= 4) {
    for (Plan plan : {plan_of(1, 16, 1, 1, batches), plan_of(2, 2, 4, 1, batches), plan_of(8, 1, 2, 4, batches)}) {
      for (plan.zero = 0; plan.zero <= (plan.pipeline == 1 ? 3 : 1); ++plan.zero) {
        const auto step = test.step(plan);
        if (!step) {
          EXPECT_NE(step.error().message().find("days"), std::string::npos) << step.error().message();
          continue;
        }
        EXPECT_GT(step->time, step->compute) << describe(plan);
        EXPECT_GT(step->compute, Nanoseconds()) << describe(plan);
        EXPECT_LE(step->efficiency, 1.001) << describe(plan);
        EXPECT_GE(step->high, step->time) << describe(plan);
      }
    }
  }
  EXPECT_FALSE(test.step(plan_of(1, 16, 1, 1, int64_t{1} << 36)));
  EXPECT_FALSE(test.step(plan_of(1, 16, 1, int64_t{1} << 40, 1)));
}

// Gradients that all travel behind the pass, in every micro-batch.
TEST(Step, ShardsAreExchangedWithoutOverlapToo) {
  const TestCase test(8);
  Plan plan = plan_of(1, 8, 1, 8, 3);
  for (plan.zero = 2; plan.zero <= 3; ++plan.zero) {
    plan.overlap = true;
    const Step beside = step_of(test, plan);
    plan.overlap = false;
    EXPECT_GE(step_of(test, plan).time, beside.time);
  }
}

// An optimizer with fewer states moves fewer bytes; attention that leaves out what a mask hides multiplies less.
TEST(Step, UpdatesAndProductsAreThoseOfTheModel) {
  TestCase test(1);
  const auto cost = [&](const Arithmetic& arithmetic) {
    return *transformer_costs(test.model, test.setup.cluster, test.setup.efficiency, arithmetic, {});
  };
  EXPECT_NEAR(cost({.update_bytes = 14}).update_ns / cost({.update_bytes = 30}).update_ns, 14.0 / 30, 1e-9);
  const double fused = cost({}).flops_per_sample;
  test.setup.efficiency.fused_attention = false;
  const double scores = 12.0 * 1024 * 1024 * 16 * 2048;  // 4 s^2 h of each layer, three times
  EXPECT_NEAR((cost({}).flops_per_sample - fused) / (scores / 2), 1, 1e-9);
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

// As Llama 3 405B has it: the first and last of 16 stages have a layer less than the others of 126.
TEST(Step, StagesMayBeUneven) {
  TestCase test(16);
  test.model.layers = 30;
  const auto costs = test.costs()({1, 1});
  ASSERT_TRUE(costs);
  const auto stages = cut_into_stages(costs->blocks, 16);
  ASSERT_TRUE(stages) << stages.error().message();
  EXPECT_EQ(stages->front().begin, 0U);
  EXPECT_EQ(stages->back().end, costs->blocks.size());
  for (size_t i = 1; i < stages->size(); ++i) {
    EXPECT_EQ((*stages)[i].begin, (*stages)[i - 1].end);
    EXPECT_LE((*stages)[i].end - (*stages)[i].begin, 3U);
  }
  EXPECT_GT(step_of(test, plan_of(1, 1, 16, 1, 64)).efficiency, 0.5);
}

TEST(Step, ZeroBubbleShrinksTheBubbleAndNothingElse) {
  const TestCase test(4);
  Plan plan = plan_of(1, 1, 4, 1, 16);
  const Step plain = step_of(test, plan);
  plan.zero_bubble = true;
  const Step filled = step_of(test, plan);
  EXPECT_LT(filled.bubble.value, plain.bubble.value * 3 / 4);
  EXPECT_GT(filled.bubble, Nanoseconds());
  EXPECT_EQ(filled.memory.total(), plain.memory.total());
}

TEST(Step, SequenceParallelismDividesWhatIsKept) {
  const TestCase test(8);
  Plan plan = plan_of(8, 1, 1, 4, 1);
  const Step whole = step_of(test, plan);
  plan.sequence = true;
  const Step divided = step_of(test, plan);
  EXPECT_LT(divided.memory.activations.value, whole.memory.activations.value / 2);
  EXPECT_LT(divided.compute, whole.compute);
  EXPECT_EQ(divided.memory.parameters, whole.memory.parameters);
}

TEST(Step, ContextParallelismDividesSequences) {
  TestCase test(8);
  test.model.sequence = test.model.positions = 16384;
  const Step whole = step_of(test, plan_of(1, 8, 1, 1, 8));
  Plan plan = plan_of(1, 1, 1, 1, 64);
  plan.context = 8;
  const Step divided = step_of(test, plan);
  EXPECT_EQ(divided.samples, whole.samples);
  EXPECT_LT(divided.memory.activations.value, whole.memory.activations.value / 7);
  EXPECT_EQ(divided.memory.parameters, whole.memory.parameters);
  EXPECT_NEAR(static_cast<double>(divided.compute.value) / static_cast<double>(whole.compute.value), 1, 0.2);
  EXPECT_EQ(divided.tensor_exchange, Nanoseconds());  // long sequences: attention hides the ring
  plan.zero = 1;
  EXPECT_LT(step_of(test, plan).memory.states.value,
            divided.memory.states.value / 7);  // the group has the same weights
}

TEST(Step, AttentionThatKeepsScoresIsRunAgain) {
  TestCase test(2);
  test.setup.efficiency.fused_attention = false;
  Plan plan = plan_of(2, 1, 1, 2, 1);
  const Step kept = step_of(test, plan);
  plan.selective = true;
  const Step again = step_of(test, plan);
  EXPECT_LT(again.memory.activations, kept.memory.activations);
  EXPECT_GT(again.compute, kept.compute);
  test.setup.efficiency.fused_attention = true;
  EXPECT_FALSE(test.step(plan));  // keeps none
}

// Of nodes that a slow network joins: parameters are gathered within the nodes, and only gradients cross it.
TEST(Step, ShardsWithinNodesSpareTheNetwork) {
  TestCase test(64);
  test.setup.cluster.between.bandwidth = 12.5e9;
  Plan plan = plan_of(1, 64, 1, 1, 1);
  plan.zero = 3;
  const Step all = step_of(test, plan);
  plan.shard = 8;
  const Step hybrid = step_of(test, plan);
  EXPECT_LT(hybrid.time, all.time);
  EXPECT_GT(hybrid.memory.states, all.memory.states);
  plan.shard = 64;
  EXPECT_EQ(step_of(test, plan).time, all.time);
}

TEST(Step, ParametersThatStayAreGatheredOnce) {
  TestCase test(64);
  test.setup.cluster.between.bandwidth = 12.5e9;
  Plan plan = plan_of(1, 64, 1, 1, 1);
  plan.zero = 3;
  const Step again = step_of(test, plan);
  plan.reshard = false;
  const Step once = step_of(test, plan);
  EXPECT_LT(once.exchange, again.exchange);
  EXPECT_GT(once.memory.parameters, again.memory.parameters);
}

// A model with a block that is half experts, on two nodes.
TEST(Step, ExpertsAreTheSameOnFewerGpus) {
  const TestCase test(16);
  const CostSource source = [](const Cut& cut) -> Result<ModelCosts> {
    ModelCosts costs;
    costs.update_ns = 0.01;
    Block block;
    block.forward = Nanoseconds(1'000'000);
    block.backward = Nanoseconds(2'000'000);
    block.expert_parameters = 800'000'000 / cut.experts;
    block.parameters = 200'000'000 + block.expert_parameters;
    costs.blocks = {block};
    return costs;
  };
  Plan plan = plan_of(1, 16, 1, 1, 1);
  const auto whole = estimate_step(source, test.setup, plan);
  ASSERT_TRUE(whole);
  plan.experts = 8;
  const auto dealt = estimate_step(source, test.setup, plan);
  ASSERT_TRUE(dealt);
  EXPECT_EQ(dealt->memory.parameters.value, 2 * 300'000'000);
  EXPECT_LT(dealt->exchange, whole->exchange);
  EXPECT_LT(dealt->update, whole->update);
  plan.zero = 1;  // experts have two owners, the rest sixteen
  const auto shared = estimate_step(source, test.setup, plan);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->memory.states.value, 12 * (200'000'000 / 16 + 100'000'000 / 2));
  plan.experts = 16;  // every expert is on one GPU alone: nothing of it is exchanged
  plan.zero = 0;
  const auto alone = estimate_step(source, test.setup, plan);
  ASSERT_TRUE(alone);
  EXPECT_LT(alone->exchange, dealt->exchange);
}

TEST(StepPicture, HasEveryPassAndEndsWithTheStep) {
  const TestCase test(16);
  Plan plan = plan_of(2, 2, 4, 1, 8);
  for (const bool zero_bubble : {false, true}) {
    plan.zero_bubble = zero_bubble;
    const Step step = step_of(test, plan);
    const auto picture = picture_of(test.costs(), test.setup, step);
    ASSERT_TRUE(picture) << picture.error().message();
    Nanoseconds end;
    int64_t passes = 0;
    std::vector<Nanoseconds> free(4);
    for (const StepEvent& event : picture->events) {
      end = std::max(end, event.begin + event.duration);
      if (event.kind == StepEventKind::exchange) continue;
      EXPECT_GE(event.begin, free[static_cast<size_t>(event.stage)]);  // one thing at a time
      free[static_cast<size_t>(event.stage)] = event.begin + event.duration;
      if (event.kind != StepEventKind::update) ++passes;
    }
    EXPECT_EQ(end, step.time);
    EXPECT_EQ(passes, zero_bubble ? 2 * 8 * 4 + 8 * 3 : 2 * 8 * 4);
    ASSERT_EQ(picture->memory.size(), 4U);
    Bytes most;
    for (const MemoryUse& use : picture->memory) most = std::max(most, use.total());
    EXPECT_EQ(most, step.memory.total());
  }
  plan.micro_batches = 1'000'000;
  plan.zero_bubble = false;
  EXPECT_FALSE(picture_of(test.costs(), test.setup, step_of(test, plan)));
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
  EXPECT_FALSE(test.step(plan_of(3, 1, 1, 1, 1)));   // 16 heads
  EXPECT_FALSE(test.step(plan_of(1, 1, 20, 1, 1)));  // 16 layers, embedding and head
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
      EXPECT_LE(ranking.steps[i - 1].ranked(), ranking.steps[i].ranked());
    }
  }
}

TEST(Search, ExpertsAreDealtOutWithinANode) {
  const TestCase test(32);
  SearchSpace space{.global_batch = 32, .layers = 16, .most_tensor = 8, .most_stages = 1};
  for (const Plan& plan : plans_of(space, test.setup.cluster)) EXPECT_EQ(plan.experts, 1);
  space.experts = 8;
  int64_t dealt = 0;
  for (const Plan& plan : plans_of(space, test.setup.cluster)) {
    EXPECT_TRUE(check_plan(plan)) << describe(plan);
    EXPECT_TRUE(plan.experts == 1 || plan.experts * plan.tensor == 8) << describe(plan);
    if (plan.experts > 1) ++dealt;
  }
  EXPECT_GT(dealt, 0);
}

TEST(Search, SequencesAndNodesAreDividedWhereTheSpaceSaysSo) {
  const TestCase test(32);
  SearchSpace space{.global_batch = 32, .layers = 16, .most_tensor = 8, .most_stages = 4};
  const auto count = [&](auto is) {
    int64_t number = 0;
    for (const Plan& plan : plans_of(space, test.setup.cluster)) {
      EXPECT_TRUE(check_plan(plan)) << describe(plan);
      EXPECT_EQ(plan.gpus(), 32) << describe(plan);
      EXPECT_EQ(plan.global_batch(), 32) << describe(plan);
      if (is(plan)) ++number;
    }
    return number;
  };
  const auto divided = [](const Plan& plan) { return plan.sequence; };
  const auto context = [](const Plan& plan) { return plan.context > 1; };
  const auto sharded = [](const Plan& plan) { return plan.shard > 0; };
  EXPECT_EQ(count(divided) + count(context) + count(sharded), 0);
  space.sequence = true;
  space.most_context = 4;
  space.within_nodes = true;
  EXPECT_GT(count(divided), 0);
  EXPECT_EQ(count([](const Plan& plan) { return plan.sequence && plan.tensor == 1; }), 0);
  EXPECT_GT(count(context), 0);
  EXPECT_EQ(count([](const Plan& plan) { return plan.context > 4; }), 0);
  EXPECT_GT(count(sharded), 0);
  EXPECT_EQ(count([](const Plan& plan) { return plan.shard > 0 && plan.shard * plan.tensor != 8; }), 0);
  const TestCase one(8);  // a node has nothing to copy to
  for (const Plan& plan : plans_of(space, one.setup.cluster)) EXPECT_EQ(plan.shard, 0) << describe(plan);
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
