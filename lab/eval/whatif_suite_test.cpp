// What-ifs against measured variants of the same step: trace of the base in, measured time of the variant beside it.
// The bands guard against getting worse; host-bound runs of one configuration differ by tens of percent between
// themselves, so they are wide.
#include "lab/eval/whatif_suite.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(WhatIfSuite, MeasuredVariantsStayWithinTheirBand) {
  const auto accuracy = evaluate_whatif({.folder = {}});
  ASSERT_TRUE(accuracy.ok()) << accuracy.error().message();
  EXPECT_TRUE(accuracy->problems.empty());
  ASSERT_GE(accuracy->cases.size(), 40U);
  for (const WhatIfCase& c : accuracy->cases) {
    EXPECT_LE(c.low_ms, c.predicted_ms);
    EXPECT_GE(c.high_ms, c.predicted_ms);
  }
  const WhatIfSummary sum = summary_of(*accuracy);
  EXPECT_LE(sum.mean_error, 0.08);
  EXPECT_LE(sum.mean_gpu_error, 0.05);
  EXPECT_EQ(sum.signs_right, sum.signs);
  EXPECT_GE(sum.covered * 10, static_cast<int64_t>(accuracy->cases.size()) * 7);
}

}  // namespace
}  // namespace forerun
