#include "scale/pipeline.h"

#include <gtest/gtest.h>

#include <random>

#include "timeline/simulator.h"

namespace forerun::scale {
namespace {

std::vector<StageTimes> random_stages(std::mt19937& random, int64_t count) {
  std::uniform_int_distribution<int64_t> time(1, 1000);
  std::vector<StageTimes> stages;
  for (int64_t i = 0; i < count; ++i) {
    const Nanoseconds weights(time(random));
    stages.push_back({Nanoseconds(time(random)), weights + Nanoseconds(time(random)), weights});
  }
  return stages;
}

TEST(Pipeline, EqualStagesFillAndDrain) {
  const std::vector<StageTimes> stages(4, {Nanoseconds(10), Nanoseconds(20)});
  const PipelineRun run = run_pipeline(stages, {4, 1, 9}, Nanoseconds(0));
  EXPECT_EQ(run.end, Nanoseconds((9 + 4 - 1) * 30));
  EXPECT_EQ(run.device_end[0], run.end);
}

TEST(Pipeline, OneStageIsASum) {
  const std::vector<StageTimes> stages(1, {Nanoseconds(7), Nanoseconds(11)});
  EXPECT_EQ(run_pipeline(stages, {1, 1, 100}, Nanoseconds(5)).end, Nanoseconds(100 * 18));
}

TEST(Pipeline, TheSlowestStageDecides) {
  std::vector<StageTimes> stages(3, {Nanoseconds(10), Nanoseconds(20)});
  stages[2] = {Nanoseconds(40), Nanoseconds(80)};
  EXPECT_EQ(run_pipeline(stages, {3, 1, 20}, Nanoseconds(0)).end, Nanoseconds(20 * 120 + 2 * 30));
}

TEST(Pipeline, InterleavingDividesTheBubble) {
  const std::vector<StageTimes> whole(4, {Nanoseconds(400), Nanoseconds(800)});
  const std::vector<StageTimes> halves(8, {Nanoseconds(200), Nanoseconds(400)});
  const Nanoseconds work(16 * 1200);
  const Nanoseconds plain = run_pipeline(whole, {4, 1, 16}, Nanoseconds(0)).end - work;
  const Nanoseconds interleaved = run_pipeline(halves, {4, 2, 16}, Nanoseconds(0)).end - work;
  EXPECT_EQ(plain, Nanoseconds(3 * 1200));
  EXPECT_EQ(interleaved, Nanoseconds(3 * 600));
}

// Qi et al., table 2: of equal thirds the bubble is (p - 1)(F + B - W), where 1F1B has (p - 1)(F + B + W).
TEST(Pipeline, GradientsOfWeightsFillTheBubble) {
  const std::vector<StageTimes> stages(4, {Nanoseconds(10), Nanoseconds(20), Nanoseconds(10)});
  const Nanoseconds work(16 * 30);
  EXPECT_EQ(run_pipeline(stages, {4, 1, 16}, Nanoseconds(0)).end - work, Nanoseconds(3 * 30));
  EXPECT_EQ(run_pipeline(stages, {4, 1, 16, true}, Nanoseconds(0)).end - work, Nanoseconds(3 * 10));
}

TEST(Pipeline, AsManyMicroBatchesAreInFlightAsWithOneForwardOneBackward) {
  for (int64_t d = 0; d < 4; ++d) {
    int64_t alive = 0, most = 0, weights = 0;
    for (const PipelinePass& pass : device_order({4, 1, 16, true}, d)) {
      if (pass.weights) {
        ++weights;
      } else {
        alive += pass.backward ? -1 : 1;
        most = std::max(most, alive);
      }
    }
    EXPECT_EQ(most, 4 - d);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(weights, d == 0 ? 0 : 16);
  }
}

// The timeline's simulator is the plain twin: it knows tasks and lanes, and nothing of pipelines.
TEST(Pipeline, AgreesWithTheTimeline) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 120; ++trial) {
    PipelineShape shape;
    shape.devices = std::uniform_int_distribution<int64_t>(1, 6)(random);
    shape.chunks = shape.devices == 1 ? 1 : std::uniform_int_distribution<int64_t>(1, 3)(random);
    shape.micro_batches = shape.devices * std::uniform_int_distribution<int64_t>(1, 12)(random);
    shape.zero_bubble = shape.chunks == 1 && trial % 2 == 1;
    const auto stages = random_stages(random, shape.devices * shape.chunks);
    const Nanoseconds hop(std::uniform_int_distribution<int64_t>(0, 50)(random));
    const auto tasks = pipeline_tasks(stages, shape, hop);
    ASSERT_TRUE(tasks) << tasks.error().message();
    const Simulation simulation = simulate(*tasks);
    const PipelineRun run = run_pipeline(stages, shape, hop);
    EXPECT_EQ(run.end, simulation.end) << "devices " << shape.devices << " chunks " << shape.chunks << " micro-batches "
                                       << shape.micro_batches;
  }
}

// What is counted of many rounds is near what they take when each is played; one device is exact.
TEST(Pipeline, ManyRoundsAreCounted) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 24; ++trial) {
    PipelineShape shape;
    shape.devices = std::uniform_int_distribution<int64_t>(1, 8)(random);
    shape.chunks = shape.devices == 1 ? 1 : std::uniform_int_distribution<int64_t>(1, 2)(random);
    shape.micro_batches = int64_t{200'000} / (shape.devices * shape.chunks) / shape.devices * shape.devices;
    if (shape.chunks == 1) shape.micro_batches += 1;
    shape.zero_bubble = shape.chunks == 1 && trial % 2 == 1;
    const auto stages = random_stages(random, shape.devices * shape.chunks);
    const Nanoseconds hop(std::uniform_int_distribution<int64_t>(0, 50)(random));
    Nanoseconds played;
    for (const auto& ends : pass_ends(stages, shape, hop)) played = std::max(played, ends.back());
    const double counted = static_cast<double>(run_pipeline(stages, shape, hop).end.value);
    EXPECT_NEAR(counted / static_cast<double>(played.value), 1, 1e-6) << shape.devices << " " << shape.chunks;
  }
}

TEST(Pipeline, EveryPassRunsOnce) {
  const PipelineShape shape{4, 3, 8};
  for (int64_t d = 0; d < 4; ++d) {
    std::vector<int> seen(static_cast<size_t>(2 * shape.chunks * shape.micro_batches));
    for (const PipelinePass& pass : device_order(shape, d)) {
      ++seen[static_cast<size_t>((pass.chunk * shape.micro_batches + pass.micro_batch) * 2 + (pass.backward ? 1 : 0))];
    }
    for (const int count : seen) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace forerun::scale
