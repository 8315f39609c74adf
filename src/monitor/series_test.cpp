#include "monitor/series.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace forerun::monitor {
namespace {

constexpr int64_t kStep = 10'000'000;  // 10 ms

double squares(const std::vector<double>& values, size_t begin, size_t end) {
  double mean = 0, sum = 0;
  for (size_t i = begin; i < end; ++i) mean += values[i] / static_cast<double>(end - begin);
  for (size_t i = begin; i < end; ++i) sum += (values[i] - mean) * (values[i] - mean);
  return sum;
}

TEST(TwoMeans, SeparatesTwoLevelsAtTheMiddleOfTheirMeans) {
  const TwoMeans means = two_means({0, 100, 2, 98, 1, 102});
  EXPECT_DOUBLE_EQ(means.low, 1);
  EXPECT_DOUBLE_EQ(means.high, 100);
  EXPECT_DOUBLE_EQ(means.threshold, 50.5);
}

TEST(TwoMeans, OfEqualValuesOrNoneHasOneMean) {
  const TwoMeans equal = two_means({7, 7, 7});
  EXPECT_DOUBLE_EQ(equal.low, 7);
  EXPECT_DOUBLE_EQ(equal.high, 7);
  EXPECT_DOUBLE_EQ(two_means({}).high, 0);
}

TEST(TwoMeans, LeavesTheLeastSquaresOfAllSplits) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> values(2 + random() % 30);
    for (double& value : values) value = static_cast<double>(random() % 50);
    const TwoMeans means = two_means(values);
    std::sort(values.begin(), values.end());
    double least = squares(values, 0, values.size());
    for (size_t split = 1; split < values.size(); ++split) {
      least = std::min(least, squares(values, 0, split) + squares(values, split, values.size()));
    }
    double found = 0;
    for (const double value : values) {
      const double mean = value > means.threshold ? means.high : means.low;
      found += (value - mean) * (value - mean);
    }
    EXPECT_NEAR(found, least, 1e-9 * (1 + least));
  }
}

TEST(BurstMetrics, OfAlternatingSeriesLeavesOutRunsThatTheEndsCut) {
  //                     cut     burst 3     idle 2  burst 1  idle 4        cut
  const Series series{kStep, {80, 0, 0, 90, 80, 100, 1, 1, 70, 0, 0, 0, 0, 60, 60, 60, 60, 60, 60}};
  const BurstMetrics metrics = burst_metrics(series, 2);
  EXPECT_EQ(name(metrics.pattern), "BIB");
  EXPECT_EQ(metrics.bursts, 2u);
  EXPECT_EQ(metrics.idles, 3u);
  EXPECT_DOUBLE_EQ(metrics.burst_ms, 20);        // 3 and 1 steps
  EXPECT_DOUBLE_EQ(metrics.idle_ms, 80.0 / 3);   // 2, 2 and 4 steps
  EXPECT_DOUBLE_EQ(metrics.amount, 780.0 / 11);  // of all values above the threshold
}

TEST(BurstMetrics, OfNothingButIdleIsI) {
  const BurstMetrics metrics = burst_metrics({kStep, {0, 0.5, 0.2, 0.9}}, 1);
  EXPECT_EQ(name(metrics.pattern), "I");
  EXPECT_DOUBLE_EQ(metrics.idle_ms, 40);
  EXPECT_DOUBLE_EQ(metrics.burst_ms, 0);
  EXPECT_DOUBLE_EQ(metrics.amount, 0);
}

TEST(BurstMetrics, OfOneHighLevelWithNoiseIsB) {
  const BurstMetrics metrics = burst_metrics({kStep, {90, 96, 100, 93, 88}}, 1);
  EXPECT_EQ(name(metrics.pattern), "B");
  EXPECT_DOUBLE_EQ(metrics.burst_ms, 50);
  EXPECT_DOUBLE_EQ(metrics.idle_ms, 0);
  EXPECT_DOUBLE_EQ(metrics.amount, 93.4);
}

TEST(BurstMetrics, CountsCutRunsWhereThereAreNoOthers) {
  const BurstMetrics metrics = burst_metrics({kStep, {50, 50, 50, 0, 0}}, 1);
  EXPECT_DOUBLE_EQ(metrics.burst_ms, 30);
  EXPECT_DOUBLE_EQ(metrics.idle_ms, 20);
}

TEST(BurstMetrics, TakesShortGapsBetweenBurstsToThem) {
  const Series series{kStep, {0, 0, 40, 0, 40, 0, 0, 40, 0, 0, 0, 40, 0}};
  EXPECT_EQ(burst_metrics(series, 1, 0).bursts, 4u);
  const BurstMetrics metrics = burst_metrics(series, 1, 21);  // gaps of one and two steps
  EXPECT_EQ(metrics.bursts, 2u);
  EXPECT_DOUBLE_EQ(metrics.burst_ms, 35);  // 6 steps and 1
  EXPECT_DOUBLE_EQ(metrics.idle_ms, 30);   // the others are cut by the ends
  EXPECT_DOUBLE_EQ(metrics.amount, 160.0 / 7);
}

TEST(BurstMetrics, OfAnEmptySeriesIsIdle) { EXPECT_EQ(name(burst_metrics({kStep, {}}, 1).pattern), "I"); }

TEST(RateSeries, SpreadsACounterReadAtUnequalTimes) {
  // 1000 units in the first 15 ms, none in the next 5 ms, 300 in the last 10 ms.
  const std::vector<CounterReading> readings = {{0, 5}, {15'000'000, 1005}, {20'000'000, 1005}, {30'000'000, 1305}};
  const Series series = rate_series(readings, 0, 30'000'000, kStep);
  ASSERT_EQ(series.values.size(), 3u);
  EXPECT_NEAR(series.values[0], 1000 / 0.015, 1e-6);
  EXPECT_NEAR(series.values[1], (1000.0 / 3) / 0.010, 1e-6);
  EXPECT_NEAR(series.values[2], 300 / 0.010, 1e-6);
}

TEST(RateSeries, EndsWithTheLastWholeStepThatWasRead) {
  EXPECT_EQ(rate_series({{0, 0}, {25'000'000, 1}}, 0, 90'000'000, kStep).values.size(), 2u);
  EXPECT_TRUE(rate_series({}, 0, 90'000'000, kStep).values.empty());
}

TEST(LevelSeries, AveragesLevelsOverSteps) {
  // 100 % until 5 ms, 0 % until 20 ms.
  const Series series = level_series({{0, 42}, {5'000'000, 100}, {20'000'000, 0}}, 0, 20'000'000, kStep);
  ASSERT_EQ(series.values.size(), 2u);
  EXPECT_NEAR(series.values[0], 50, 1e-9);
  EXPECT_NEAR(series.values[1], 0, 1e-9);
}

}  // namespace
}  // namespace forerun::monitor
