#include "scale/whole_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace forerun::scale {
namespace {

constexpr RunLoad kLlama{.hours = 54 * 24 * 0.9, .gpus = 16384, .nodes = 2048, .state = Bytes(405'000'000'000 * 14)};

// What its authors tell: more than 90 % of the time was spent on training, and a failure came every three hours.
TEST(WholeRun, LlamaTrainsNineTenthsOfTheTime) {
  const WholeRun run = whole_run(kLlama, {});
  EXPECT_NEAR(run.mttf_hours, 3.1, 0.05);
  EXPECT_GT(run.goodput, 0.88);
  EXPECT_LT(run.goodput, 0.96);
  EXPECT_NEAR(run.failures, 419, 30);
  EXPECT_LT(run.low_hours, run.hours);
  EXPECT_GT(run.high_hours, run.hours);
}

// Where a checkpoint takes longer to write than the cluster lives, the run never ends, and says so.
TEST(WholeRun, SomeRunsNeverEnd) {
  for (const RunRisks& risks : {RunRisks{.mttf_hours = 1}, RunRisks{.storage_rate = 1e6}}) {
    const WholeRun run = whole_run(kLlama, risks);
    EXPECT_FALSE(run.ends());
    EXPECT_EQ(run.goodput, 0);
  }
  const WholeRun hard = whole_run(kLlama, {.mttf_hours = 5000});
  EXPECT_TRUE(hard.ends());
  EXPECT_LT(hard.goodput, 0.8);
  EXPECT_GT(hard.high_hours, hard.hours);
}

// The plain twin: a run played failure by failure.
double played_hours(double hours, double mttf, double restart, double write, double interval, std::mt19937& random) {
  std::exponential_distribution<double> failure(1 / mttf);
  double clock = 0, done = 0, next = failure(random);
  while (done < hours) {
    const double step = std::min(interval, hours - done);
    if (clock + step + write <= next) {
      clock += step + write;
      done += step;
      continue;
    }
    clock = next;  // and again as often as it fails while it restarts
    for (next = clock + failure(random); clock + restart > next; next = clock + failure(random)) clock = next;
    clock += restart;
  }
  return clock;
}

TEST(WholeRun, AgreesWithRunsPlayedFailureByFailure) {
  const RunRisks risks{.mttf_hours = 5 * 1024, .restart_minutes = 20, .storage_rate = 5e9};
  const RunLoad load{.hours = 2000, .gpus = 1024, .nodes = 128, .state = Bytes(1'000'000'000'000)};
  const WholeRun run = whole_run(load, risks);
  std::mt19937 random(11);
  double sum = 0;
  constexpr int kRuns = 40;
  for (int i = 0; i < kRuns; ++i) {
    sum += played_hours(load.hours, run.mttf_hours, 20.0 / 60, run.checkpoint_seconds / 3600, run.interval_minutes / 60,
                        random);
  }
  EXPECT_NEAR(run.hours / (sum / kRuns), 1, 0.01);
}

TEST(WholeRun, TheIntervalIsTheBest) {
  const RunLoad load{.hours = 1000, .gpus = 4096, .nodes = 512, .state = Bytes(2'000'000'000'000)};
  const WholeRun best = whole_run(load, {.storage_rate = 2e10});
  std::mt19937 random(3);
  const auto mean = [&](double minutes) {
    double sum = 0;
    for (int i = 0; i < 60; ++i) {
      sum += played_hours(load.hours, best.mttf_hours, 10.0 / 60, best.checkpoint_seconds / 3600, minutes / 60, random);
    }
    return sum / 60;
  };
  const double there = mean(best.interval_minutes);
  EXPECT_LT(there, mean(best.interval_minutes / 3));
  EXPECT_LT(there, mean(best.interval_minutes * 3));
}

TEST(WholeRun, EveryoneWaitsForTheSlowest) {
  EXPECT_NEAR(largest_deviation(1, 0.5), 0, 1e-6);
  EXPECT_NEAR(largest_deviation(1000, 0.5), 3.2, 0.02);  // 0.5^(1/1000) of a normal distribution
  const RunLoad load{.hours = 100, .gpus = 1000, .nodes = 125, .state = Bytes(0), .busy = 0.5};
  const RunRisks steady{.mttf_hours = 1e12};
  RunRisks spread = steady;
  spread.spread = 0.02;
  EXPECT_NEAR(whole_run(load, steady).hours, 100, 1e-3);
  EXPECT_NEAR(whole_run(load, spread).hours, 100 * (1 + 0.5 * 0.02 * 3.2), 0.1);
}

}  // namespace
}  // namespace forerun::scale
