#include "scale/offload.h"

#include <gtest/gtest.h>

#include "scale/test_cluster.h"

namespace forerun::scale {
namespace {

Plan sharded_plan(int zero, bool offload) {
  Plan plan;
  plan.data = 8;
  plan.zero = zero;
  plan.offload = offload;
  return plan;
}

TestCase on_hosts() {
  TestCase test(8);
  test.setup.cluster.gpu.pcie_bandwidth = 64e9;
  test.setup.megatron = true;
  return test;
}

TEST(Offload, HostMovesWhatTheOptimizerReadsAndWrites) {
  EXPECT_EQ(host_bytes({4, 4, 8, 4}, false),
            28);  // Adam in float32: three of four bytes each read and written, a gradient
  EXPECT_EQ(host_bytes({2, 2, 12, 2}, true),
            28);  // Megatron's: the same in float32, a gradient and a weight of two bytes
}

TEST(Offload, StepTakesAsLongAsTheMemoryThatANodeShares) {
  const TestCase test = on_hosts();
  const OffloadedUpdate eighth = offloaded_update(1e9, {4, 4, 8, 4}, false, test.setup.cluster);
  EXPECT_NEAR(static_cast<double>(eighth.step.value) * 1e-9, 28e9 * 8 / (409.6e9 / 2), 1e-6);
  EXPECT_NEAR(static_cast<double>(eighth.out.value) * 1e-9, 4e9 / (32e9 * 0.8), 1e-6);
  GpuCluster alone = test.setup.cluster;
  alone.gpus = 1;
  EXPECT_EQ(offloaded_update(1e9, {4, 4, 8, 4}, false, alone).step.value * 8, eighth.step.value);
}

TEST(Offload, BackwardPassHidesGradientsOnTheirWayAndTheStepWeights) {
  const OffloadedUpdate update{Nanoseconds(100), Nanoseconds(50), Nanoseconds(80)};
  EXPECT_EQ(shown_of(update, Nanoseconds(30)), Nanoseconds(150));
  EXPECT_EQ(shown_of(update, Nanoseconds(500)), Nanoseconds(80));
}

TEST(Offload, FreesTheOptimizerStatesForALongerUpdate) {
  const TestCase test = on_hosts();
  for (const int zero : {1, 2, 3}) {
    const auto kept = test.step(sharded_plan(zero, false)), moved = test.step(sharded_plan(zero, true));
    ASSERT_TRUE(kept && moved);
    EXPECT_EQ(moved->memory.states, Bytes());
    EXPECT_EQ(moved->memory.total(), kept->memory.total() - kept->memory.states);
    EXPECT_GT(moved->update, kept->update);
    EXPECT_EQ(moved->compute, kept->compute);
    EXPECT_FALSE(moved->unvalidated.empty());
  }
  EXPECT_FALSE(test.step(sharded_plan(0, true)));
}

}  // namespace
}  // namespace forerun::scale
