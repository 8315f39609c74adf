#include "lab/calibrate/device_regression.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun::hybrid {
namespace {

TEST(DeviceRegression, FindsOffsetAndWeightInSpiteOfOutliers) {
  std::vector<CarriedOp> ops;
  for (int i = 0; i < 300; ++i) {
    CarriedOp op{.gpu = i % 3 == 0 ? "a" : "b", .chip = "known", .kind = "gradient"};
    op.row = {.analytic_us = 100.0 + i, .correction = 0.5 + 0.01 * i, .kind = Carried::gradient};
    op.us = op.row.analytic_us * 0.4 * std::sqrt(op.row.correction) * (i % 10 == 0 ? 5 : 1);
    ops.push_back(op);
    CarriedOp apart = op;
    apart.gpu = apart.chip = "apart";
    apart.us = 9 * op.us;
    ops.push_back(apart);
  }
  DeviceScale scale;
  scale.carry = calibrate_carry(ops, scale, {}, "apart");
  const Carry& found = scale.carry[static_cast<size_t>(Carried::gradient)];
  EXPECT_NEAR(found.offset, std::log(0.4), 0.05);
  EXPECT_NEAR(found.weight, 0.5, 0.05);
  EXPECT_DOUBLE_EQ(scale.carry[static_cast<size_t>(Carried::product)].weight, 1);
  const auto errors = carried_errors(ops, scale, {});
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].gpu, "a");
  EXPECT_NEAR(errors[0].ratio, 1, 0.05);
  EXPECT_NEAR(errors[1].ratio, 9, 0.5);
  EXPECT_EQ(errors[2].ops, 200);
}

CarriedOp long_op(const std::string& gpu, double us, double moved_us, bool reach_bound = true) {
  CarriedOp op{.gpu = gpu, .chip = gpu, .kind = "add", .us = us, .moved_us = moved_us};
  op.row = {.analytic_us = us / 2, .correction = 1, .kind = Carried::gradient, .memory_us = moved_us};
  op.row.reach_bound = reach_bound;
  return op;
}

TEST(DeviceRegression, ReachIsTheMeanOverGpusOfLongOps) {
  std::vector<CarriedOp> ops = {long_op("a", 1000, 700),     long_op("a", 2000, 1400), long_op("b", 1000, 800),
                                long_op("apart", 1000, 100), long_op("b", 100, 10),    long_op("c", 1000, 900, false)};
  EXPECT_DOUBLE_EQ(calibrate_reach(ops, "add", {}, "apart"), 0.75);
  EXPECT_DOUBLE_EQ(calibrate_reach(ops, "mul", {}), 0);
}

TEST(DeviceRegression, LaunchingIsAShareOfTheLeastOfOtherChips) {
  std::vector<CarriedOp> ops = {long_op("a", 1000, 700), long_op("b", 1000, 700), long_op("apart", 1000, 700)};
  ops[0].least_us = 20;
  ops[1].least_us = 60;
  ops[2].least_us = 600;
  const Launches launches = calibrate_launches(ops, "apart");
  EXPECT_DOUBLE_EQ(launches.at("add"), 30);
  EXPECT_DOUBLE_EQ(calibrate_reach(ops, "add", launches, "apart"), 700.0 / 970);
  EXPECT_TRUE(calibrate_launches({}).empty());
  std::vector<CarriedOp> streaming;
  for (const double moved : {100.0, 200.0, 400.0}) {
    streaming.push_back(long_op("a", 25 + 1.5 * moved, moved));
    streaming.back().row.streamed = StreamedRow{};
    streaming.back().least_us = 40;
  }
  EXPECT_NEAR(calibrate_launches(streaming).at("add"), 25, 1e-6);  // where the line begins
}

TEST(DeviceRegression, WhatTheBandwidthBoundsTellsNothingOfTheCorrection) {
  DeviceScale scale;
  scale.bandwidth_reach = 0.75;
  const std::vector<CarriedOp> ops = {long_op("a", 1000, 750), long_op("b", 1100, 750)};
  const auto carry = calibrate_carry(ops, scale, {})[static_cast<size_t>(Carried::gradient)];
  EXPECT_DOUBLE_EQ(carry.offset, 0);
  EXPECT_DOUBLE_EQ(carry.weight, 1);
}

TEST(DeviceRegression, FindsTheFactorsOfStreamingKernelsWithoutTheChipLeftOut) {
  DeviceScale scale;
  scale.open_reach = 0.8;
  scale.streaming[static_cast<size_t>(Streaming::softmax)] = {0.6, 1.4};
  std::vector<CarriedOp> ops;
  for (int i = 0; i < 40; ++i) {
    CarriedOp op{.gpu = "a", .chip = "a", .kind = "softmax"};
    op.row.streamed = StreamedRow{.kind = Streaming::softmax, .lanes_us = 100.0 + 20 * i, .memory_us = 900.0 - 20 * i};
    op.us = carried_us(op.row, scale);
    op.roofline_us = op.us / 2;
    ops.push_back(op);
    op.gpu = op.chip = "apart";
    op.us *= 3;
    ops.push_back(op);
  }
  scale.streaming = calibrate_streaming(ops, DeviceScale{.open_reach = 0.8}, {}, "apart");
  const StreamFactors& found = scale.streaming[static_cast<size_t>(Streaming::softmax)];
  EXPECT_NEAR(found.lanes, 0.6, 0.04);
  EXPECT_NEAR(found.memory, 1.4, 0.08);
  EXPECT_DOUBLE_EQ(scale.streaming[static_cast<size_t>(Streaming::normalization)].lanes, 1);
  const auto errors = carried_errors(ops, scale, {});
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_LT(errors[0].mre, 0.05);
  EXPECT_NEAR(errors[0].roofline, 0.5, 1e-9);
  EXPECT_GT(errors[1].mre, 0.6);
}

}  // namespace
}  // namespace forerun::hybrid
