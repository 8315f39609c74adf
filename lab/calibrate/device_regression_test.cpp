#include "lab/calibrate/device_regression.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun::hybrid {
namespace {

TEST(DeviceRegression, FindsOffsetAndWeightInSpiteOfOutliers) {
  std::vector<CarriedOp> ops;
  for (int i = 0; i < 300; ++i) {
    CarriedOp op{.gpu = i % 3 == 0 ? "a" : "b", .chip = "known", .kind = "norm"};
    op.row = {.analytic_us = 100.0 + i, .correction = 0.5 + 0.01 * i, .kind = Carried::normalization};
    op.us = op.row.analytic_us * 0.4 * std::sqrt(op.row.correction) * (i % 10 == 0 ? 5 : 1);
    ops.push_back(op);
    CarriedOp apart = op;
    apart.gpu = apart.chip = "apart";
    apart.us = 9 * op.us;
    ops.push_back(apart);
  }
  DeviceScale scale;
  scale.carry = calibrate_carry(ops, scale, "apart");
  const Carry& found = scale.carry[static_cast<size_t>(Carried::normalization)];
  EXPECT_NEAR(found.offset, std::log(0.4), 0.05);
  EXPECT_NEAR(found.weight, 0.5, 0.05);
  EXPECT_DOUBLE_EQ(scale.carry[static_cast<size_t>(Carried::product)].weight, 1);
  const auto errors = carried_errors(ops, scale);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].gpu, "a");
  EXPECT_NEAR(errors[0].ratio, 1, 0.05);
  EXPECT_NEAR(errors[1].ratio, 9, 0.5);
  EXPECT_EQ(errors[2].ops, 200);
}

CarriedOp streaming(const std::string& gpu, double us, double memory_us) {
  CarriedOp op{.gpu = gpu, .chip = gpu, .kind = "add", .us = us};
  op.row = {.analytic_us = us / 2, .correction = 1, .kind = Carried::softmax, .memory_us = memory_us};
  return op;
}

TEST(DeviceRegression, ReachIsTheMeanOverGpusOfLongOps) {
  std::vector<CarriedOp> ops = {streaming("a", 1000, 700),     streaming("a", 2000, 1400), streaming("b", 1000, 800),
                                streaming("apart", 1000, 100), streaming("b", 100, 10),    streaming("c", 1000, 0)};
  EXPECT_DOUBLE_EQ(calibrate_reach(ops, "add", "apart"), 0.75);
  EXPECT_DOUBLE_EQ(calibrate_reach(ops, "mul"), 0);
}

TEST(DeviceRegression, WhatTheBandwidthBoundsTellsNothingOfTheCorrection) {
  DeviceScale scale;
  scale.bandwidth_reach = 0.75;
  const std::vector<CarriedOp> ops = {streaming("a", 1000, 750), streaming("b", 1100, 750)};
  const auto carry = calibrate_carry(ops, scale)[static_cast<size_t>(Carried::softmax)];
  EXPECT_DOUBLE_EQ(carry.offset, 0);
  EXPECT_DOUBLE_EQ(carry.weight, 1);
}

}  // namespace
}  // namespace forerun::hybrid
