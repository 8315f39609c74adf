#include "cost/hybrid/prediction_intervals.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"

namespace forerun {
namespace {

TEST(PredictionIntervals, IsNoNarrowerFartherAway) {
  const PredictionIntervals intervals{
      .gpu_bound = {0.9, 1.2}, .host_bound = {0.6, 1.5}, .other_gpu = {{{0.7, 1.1}, {0.8, 1.7}, {0.75, 1.6}}}};
  EXPECT_DOUBLE_EQ(interval_of(intervals, false, GpuDistance::none).low, 0.9);
  EXPECT_DOUBLE_EQ(interval_of(intervals, false, GpuDistance::near).low, 0.7);
  EXPECT_DOUBLE_EQ(interval_of(intervals, false, GpuDistance::near).high, 1.2);
  EXPECT_DOUBLE_EQ(interval_of(intervals, true, GpuDistance::near).low, 0.6);
  EXPECT_DOUBLE_EQ(interval_of(intervals, true, GpuDistance::far).high, 1.7);
  EXPECT_DOUBLE_EQ(interval_of(intervals, false, GpuDistance::far).low, 0.7);
  EXPECT_DOUBLE_EQ(interval_of(intervals, false, GpuDistance::beyond).high, 1.7);
}

TEST(PredictionIntervals, DistanceFollowsFromArchitecturePrecisionAndDatasheet) {
  Device measured{.name = "measured", .architecture = "hopper", .power_w = 700, .compute_capability = 90};
  Device device = measured;
  EXPECT_EQ(gpu_distance(device, measured, Precision::amp_bf16), GpuDistance::none);
  device.name = "kin";
  EXPECT_EQ(gpu_distance(device, measured, Precision::amp_bf16), GpuDistance::near);
  device.architecture = "ampere";
  device.compute_capability = 80;
  EXPECT_EQ(gpu_distance(device, measured, Precision::fp32), GpuDistance::far);
  device.measured = Measured::elsewhere;
  EXPECT_EQ(gpu_distance(device, measured, Precision::fp32), GpuDistance::near);
  EXPECT_EQ(gpu_distance(device, measured, Precision::amp_bf16), GpuDistance::far);
  device.power_w = 0;
  EXPECT_EQ(gpu_distance(device, measured, Precision::fp32), GpuDistance::beyond);
  device.power_w = 1000;
  device.measured = Measured::never;
  device.compute_capability = 100;
  EXPECT_EQ(gpu_distance(device, measured, Precision::fp32), GpuDistance::beyond);
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
  const RatioInterval wide{0.5, 2};
  ASSERT_TRUE(save_prediction_intervals({{0.9, 1.2}, {0.8, 1.5}, {wide, wide, wide}}, file).ok());
  const auto intervals = load_prediction_intervals(file);
  ASSERT_TRUE(intervals.ok()) << intervals.error().message();
  EXPECT_DOUBLE_EQ(intervals->other(GpuDistance::far).high, 2);
  ASSERT_TRUE(save_prediction_intervals({{1.1, 1.2}, {0.8, 1.5}, {wide, wide, wide}}, file).ok());
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
