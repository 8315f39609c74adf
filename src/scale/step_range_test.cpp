#include "scale/step_range.h"

#include <gtest/gtest.h>

#include "scale/step.h"
#include "scale/test_cluster.h"

namespace forerun::scale {
namespace {

Step ranged(const Plan& plan, const StepSetup& setup, Nanoseconds exposed = Nanoseconds(0)) {
  Step step;
  step.plan = plan;
  step.time = Nanoseconds(1'000'000);
  step.exposed = exposed;
  step.computation = setup.computation;
  set_range(step, setup);
  return step;
}

TEST(StepRange, OfOneGpuIsThatOfItsComputation) {
  StepSetup setup;
  setup.computation = {0.9, 1.2};
  const Step step = ranged({}, setup);
  EXPECT_EQ(step.low.value, 900'000);
  EXPECT_EQ(step.high.value, 1'200'000);
  EXPECT_TRUE(step.unvalidated.empty());
}

TEST(StepRange, GrowsWithExchangeNodesAndWhatWasNeverValidated) {
  StepSetup setup;
  setup.computation = {0.9, 1.2};
  setup.cluster.gpu.name = "NVIDIA A100-SXM4-80GB";
  setup.cluster.between.bandwidth = 100e9;
  const Plan few{.data = 8, .zero = 3}, many{.data = 128, .zero = 3}, tensor{.tensor = 2, .data = 4};
  const Step near = ranged(few, setup);
  EXPECT_LT(ranged(few, setup, Nanoseconds(500'000)).low, near.low);
  EXPECT_GT(ranged(few, setup, Nanoseconds(500'000)).high, near.high);
  EXPECT_GT(ranged(many, setup).high, near.high);
  const Step unvalidated = ranged(tensor, setup);
  EXPECT_GE((unvalidated.high - near.high).value, 400'000);
  EXPECT_EQ(unvalidated.unvalidated.size(), 1);
  EXPECT_EQ(unvalidated.ranked(), unvalidated.high);
  EXPECT_EQ(near.ranked(), near.time);
}

TEST(StepRange, NoPublishedRunOfManyGpusIsCompiledHere) {
  StepSetup setup;
  setup.cluster.gpu.name = "NVIDIA A100-SXM4-80GB";
  setup.compiled = true;
  EXPECT_TRUE(ranged({}, setup).unvalidated.empty());
  EXPECT_EQ(ranged({.data = 8}, setup).unvalidated.size(), 1U);
  setup.compiled = false;
  EXPECT_TRUE(ranged({.data = 8}, setup).unvalidated.empty());
}

TEST(StepRange, SaysWhatNoPublishedRunTellsOf) {
  GpuCluster cluster;
  cluster.gpu.name = "NVIDIA A100-SXM4-80GB";
  cluster.node = 8;
  cluster.between.bandwidth = 200e9;
  const Plan megatron{.tensor = 8, .data = 4, .pipeline = 8, .checkpoint = true}, sharded{.data = 64, .zero = 3};
  EXPECT_TRUE(unvalidated_parts(megatron, cluster, true).empty());
  EXPECT_FALSE(unvalidated_parts(megatron, cluster, false).empty());
  Plan kept = megatron, shared = megatron;
  kept.checkpoint = false;
  shared.zero = 1;
  EXPECT_FALSE(unvalidated_parts(kept, cluster, true).empty());
  EXPECT_FALSE(unvalidated_parts(shared, cluster, true).empty());
  EXPECT_TRUE(unvalidated_parts(sharded, cluster, false).empty());
  const Plan node{.tensor = 8};
  EXPECT_TRUE(unvalidated_parts(node, cluster, true, 2048).empty());
  EXPECT_FALSE(unvalidated_parts(node, cluster, true, 6144).empty());
  Plan interleaved = megatron;
  interleaved.chunks = 3;
  EXPECT_TRUE(unvalidated_parts(interleaved, cluster, true).empty());
  interleaved.chunks = 4;
  EXPECT_FALSE(unvalidated_parts(interleaved, cluster, true).empty());
  Plan divided = megatron;
  divided.sequence = true;
  EXPECT_FALSE(unvalidated_parts(divided, cluster, true).empty());
  const Plan huge{.data = 4096, .zero = 3};
  EXPECT_FALSE(unvalidated_parts(huge, cluster, false).empty());
  cluster.between.bandwidth = 3e9;
  EXPECT_FALSE(unvalidated_parts(sharded, cluster, false).empty());
  cluster.between.bandwidth = 200e9;
  cluster.gpu.name = "NVIDIA B200";
  EXPECT_FALSE(unvalidated_parts(sharded, cluster, false).empty());
}

}  // namespace
}  // namespace forerun::scale
