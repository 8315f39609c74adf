#include "cost/hybrid/prediction_intervals.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"

namespace forerun {
namespace {

TEST(PredictionIntervals, IsNoNarrowerOnAnotherGpu) {
  const PredictionIntervals intervals{.gpu_bound = {0.9, 1.2}, .host_bound = {0.6, 1.5}, .other_gpu = {0.7, 1.7}};
  EXPECT_DOUBLE_EQ(interval_of(intervals, false, true).low, 0.9);
  EXPECT_DOUBLE_EQ(interval_of(intervals, false, false).low, 0.7);
  EXPECT_DOUBLE_EQ(interval_of(intervals, true, false).low, 0.6);
  EXPECT_DOUBLE_EQ(interval_of(intervals, true, false).high, 1.7);
}

TEST(PredictionIntervals, HoldsEightOfTenAndOne) {
  std::vector<double> ratios;
  for (int i = 0; i <= 100; ++i) ratios.push_back(0.7 + 0.01 * ((i * 37) % 101));
  EXPECT_DOUBLE_EQ(range_of(ratios).low, 0.8);
  EXPECT_DOUBLE_EQ(range_of(ratios).high, 1.6);
  EXPECT_DOUBLE_EQ(range_of({1.2, 1.4}).low, 1);
  EXPECT_DOUBLE_EQ(range_of({}).high, 1);
}

TEST(PredictionIntervals, LoadsWhatItSaved) {
  const std::string file = testing::TempDir() + "/spread_test.json";
  ASSERT_TRUE(save_prediction_intervals({{0.9, 1.2}, {0.8, 1.5}, {0.5, 2}}, file).ok());
  const auto intervals = load_prediction_intervals(file);
  ASSERT_TRUE(intervals.ok()) << intervals.error().message();
  EXPECT_DOUBLE_EQ(intervals->other_gpu.high, 2);
  ASSERT_TRUE(save_prediction_intervals({{1.1, 1.2}, {0.8, 1.5}, {0.5, 2}}, file).ok());
  EXPECT_FALSE(load_prediction_intervals(file).ok());
}

TEST(PredictionIntervals, LoadsTheOneThatComesAlong) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok());
  const auto intervals = load_prediction_intervals(*folder / "cost" / "intervals.json");
  ASSERT_TRUE(intervals.ok()) << intervals.error().message();
  EXPECT_LT(intervals->gpu_bound.low, 1);
  EXPECT_GT(intervals->host_bound.high, 1);
}

}  // namespace
}  // namespace forerun
