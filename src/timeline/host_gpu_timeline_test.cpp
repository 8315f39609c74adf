#include "timeline/host_gpu_timeline.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun {
namespace {

LaneOp op(int64_t host, int64_t gpu, int kernels = 1, Phase phase = Phase::forward, Bound bound = Bound::compute) {
  return {Nanoseconds(host), Nanoseconds(gpu), kernels, false, phase, bound};
}

LaneSetup setup(int64_t gap = 0, int64_t per_iteration = 0) {
  LaneSetup made;
  made.gap = Nanoseconds(gap);
  made.per_iteration = Nanoseconds(per_iteration);
  return made;
}

TEST(TwoLaneTest, GpuBoundIterationIsTheGpuTime) {
  const std::vector<LaneOp> ops = {op(10, 100), op(10, 50), op(5, 0, 0)};
  const IterationTiming times = host_gpu_timeline(ops, setup());
  EXPECT_EQ(times.iteration, Nanoseconds(150));
  EXPECT_EQ(times.gpu_busy, Nanoseconds(150));
  EXPECT_EQ(times.host_busy, Nanoseconds(25));
  EXPECT_EQ(times.bound, Bottleneck::compute);
  EXPECT_LE(times.simulated, 4);
}

TEST(TwoLaneTest, HostBoundIterationIsTheHostTime) {
  const std::vector<LaneOp> ops = {op(100, 10), op(70, 20), op(30, 0, 0)};
  const IterationTiming times = host_gpu_timeline(ops, setup(0, 1000));
  EXPECT_EQ(times.iteration, Nanoseconds(1200));
  EXPECT_EQ(times.bound, Bottleneck::host);
}

TEST(TwoLaneTest, GapsOccupyTheStreamButAreNotBusy) {
  const std::vector<LaneOp> ops = {op(1, 100, 2), op(1, 50)};
  const IterationTiming times = host_gpu_timeline(ops, setup(5));
  EXPECT_EQ(times.iteration, Nanoseconds(165));
  EXPECT_EQ(times.gpu_busy, Nanoseconds(150));
}

TEST(TwoLaneTest, KernelsOfACudaGraphHaveHardlyAGap) {
  std::vector<LaneOp> ops = {op(1, 100'000, 10), op(1, 50'000)};
  EXPECT_EQ(host_gpu_timeline(ops, setup(1500)).iteration, Nanoseconds(150'000 + 11 * 1500));
  ops[0].captured = true;
  EXPECT_EQ(host_gpu_timeline(ops, setup(1500)).iteration, Nanoseconds(150'000 + 10 * 200 + 1500));
  EXPECT_EQ(reference_host_gpu_timeline(ops, setup(1500), 4), host_gpu_timeline(ops, setup(1500)).iteration);
  EXPECT_EQ(host_gpu_timeline(ops, setup(50)).iteration, Nanoseconds(150'000 + 11 * 50));  // never more than one by one
}

TEST(TwoLaneTest, SpansSayWhenKernelsRun) {
  // The host launches at 10, at 15 and 20, and at 70; the second op's kernels wait for the first's.
  const std::vector<LaneOp> ops = {op(10, 30), op(10, 20, 2), op(5, 0, 0), op(45, 7)};
  const std::vector<KernelSpan> spans = kernel_spans(ops, setup(1));
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[0].begin, Nanoseconds(10));
  EXPECT_EQ(spans[0].end, Nanoseconds(40));
  EXPECT_EQ(spans[1].begin, Nanoseconds(41));
  EXPECT_EQ(spans[1].end, Nanoseconds(62));  // two kernels of 10 and a gap between them
  EXPECT_EQ(spans[1].busy, Nanoseconds(20));
  EXPECT_EQ(spans[2].begin, spans[2].end);
  EXPECT_EQ(spans[2].busy, Nanoseconds(0));
  EXPECT_EQ(spans[3].begin, Nanoseconds(70));
  EXPECT_EQ(spans[3].end, Nanoseconds(77));
}

TEST(TwoLaneTest, WaitingSerialisesTheLanes) {
  std::vector<LaneOp> ops = {op(10, 100), op(10, 0, 0)};
  EXPECT_EQ(host_gpu_timeline(ops, setup()).iteration, Nanoseconds(100));
  ops[1].waits = true;
  // Launch at 10, kernel until 110, then the next iteration begins.
  EXPECT_EQ(host_gpu_timeline(ops, setup()).iteration, Nanoseconds(110));
}

TEST(TwoLaneTest, PhasesAddUpToTheIteration) {
  const std::vector<LaneOp> ops = {op(10, 100), op(10, 200, 1, Phase::backward), op(10, 50, 1, Phase::update)};
  const IterationTiming times = host_gpu_timeline(ops, setup());
  EXPECT_EQ(times.phases[0], Nanoseconds(100));
  EXPECT_EQ(times.phases[1], Nanoseconds(200));
  EXPECT_EQ(times.phases[2], Nanoseconds(50));
  EXPECT_EQ(times.iteration, Nanoseconds(350));
}

TEST(TwoLaneTest, VerdictFollowsTheLargerShare) {
  const std::vector<LaneOp> ops = {op(1, 100, 1, Phase::forward, Bound::compute),
                                   op(1, 101, 1, Phase::forward, Bound::memory)};
  EXPECT_EQ(host_gpu_timeline(ops, setup()).bound, Bottleneck::memory);
}

TEST(TwoLaneTest, AnEmptyIterationTakesNoTime) {
  EXPECT_EQ(host_gpu_timeline({}, setup()).iteration, Nanoseconds(0));
  EXPECT_EQ(host_gpu_timeline({}, setup(0, 7)).iteration, Nanoseconds(7));
}

std::vector<LaneOp> random_ops(std::mt19937_64& random, bool waiting) {
  const auto pick = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
  std::vector<LaneOp> ops;
  for (int64_t i = 0, count = 1 + pick(30); i < count; ++i) {
    const int kernels = static_cast<int>(pick(4));
    // Multiples of the kernel count divide evenly, so that both simulators round alike.
    const int64_t unit = std::max(1, kernels);
    const auto phase = static_cast<Phase>(i * 3 / count);
    LaneOp made = op(pick(50) * unit, kernels == 0 ? 0 : pick(60) * unit, kernels, phase);
    made.waits = waiting && pick(9) == 0;
    ops.push_back(made);
  }
  return ops;
}

TEST(TwoLaneTest, AgreesWithThePlainSimulation) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<LaneOp> ops = random_ops(random, trial % 2 == 1);
    LaneSetup s = setup(static_cast<int64_t>(random() % 4), static_cast<int64_t>(random() % 100));
    s.most_iterations = 200;
    const IterationTiming times = host_gpu_timeline(ops, s);
    EXPECT_EQ(times.iteration, reference_host_gpu_timeline(ops, s, 200)) << "trial " << trial;
    EXPECT_EQ(times.phases[0] + times.phases[1] + times.phases[2], times.iteration) << "trial " << trial;
  }
}

TEST(TwoLaneTest, WithoutWaitingTheSlowerLaneDecides) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 500; ++trial) {
    const std::vector<LaneOp> ops = random_ops(random, false);
    const IterationTiming times = host_gpu_timeline(ops, setup());
    EXPECT_EQ(times.iteration, std::max(times.gpu_busy, times.host_busy)) << "trial " << trial;
  }
}

}  // namespace
}  // namespace forerun
