#include "lab/calibrate/device_regression.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun::hybrid {
namespace {

TEST(DeviceRegression, FindsOffsetAndWeightInSpiteOfOutliers) {
  std::vector<CarriedOp> ops;
  for (int i = 0; i < 300; ++i) {
    CarriedOp op{.gpu = i % 3 == 0 ? "a" : "b", .kind = "norm", .carried = Carried::normalization};
    op.correction = 0.5 + 0.01 * i;
    op.analytic_us = 100 + i;
    op.us = op.analytic_us * 0.4 * std::sqrt(op.correction) * (i % 10 == 0 ? 5 : 1);
    ops.push_back(op);
    CarriedOp apart = op;
    apart.gpu = "apart";
    apart.us = 9 * op.us;
    ops.push_back(apart);
  }
  DeviceScale scale;
  scale.carry = calibrate_carry(ops, "apart");
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

}  // namespace
}  // namespace forerun::hybrid
