// What-ifs against measured variants of the same step: trace of the base in, measured time of the variant beside it.
// Where the host decides, the measured gain itself is noise of tens of per cent (WhatIfAccuracy::scatter), so the bands of
// iteration time are wide there, and GPU busy time, which repeats, has narrow ones.
#include "lab/eval/whatif_suite.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace forerun {
namespace {

const WhatIfSummary& named(const std::vector<WhatIfSummary>& summaries, const std::string& of) {
  const auto found = std::find_if(summaries.begin(), summaries.end(), [&](const auto& sum) { return sum.of == of; });
  EXPECT_NE(found, summaries.end()) << of;
  return *found;
}

TEST(WhatIfSuite, MeasuredVariantsStayWithinTheirBand) {
  const auto accuracy = evaluate_whatif({.folder = {}});
  ASSERT_TRUE(accuracy.ok()) << accuracy.error().message();
  EXPECT_TRUE(accuracy->problems.empty());
  for (const WhatIfCase& c : accuracy->cases) {
    EXPECT_LE(c.low_ms, c.predicted.ms);
    EXPECT_GE(c.high_ms, c.predicted.ms);
  }
  const std::vector<WhatIfSummary> summaries = summaries_of(*accuracy);
  const WhatIfSummary& bases = named(summaries, "bases");
  EXPECT_EQ(bases.cases, 6);
  EXPECT_LE(bases.mean_error, 0.06);
  EXPECT_LE(bases.largest_error, 0.15);

  const WhatIfSummary& all = named(summaries, "optimizations");
  EXPECT_GE(all.cases, 30);
  EXPECT_LE(all.mean_gain_error, 0.08);
  EXPECT_LE(all.largest_gain_error, 0.35);
  EXPECT_LE(all.mean_gpu_gain_error, 0.03);
  EXPECT_LE(all.largest_gpu_gain_error, 0.15);
  EXPECT_GE(all.measured_signs.right * 100, all.measured_signs.all * 85);
  EXPECT_GE(all.predicted_signs.right * 100, all.predicted_signs.all * 85);
  EXPECT_GE(all.ranks.right * 100, all.ranks.all * 85);
  EXPECT_GE(all.covered.right * 100, all.covered.all * 75);

  const WhatIfSummary& gpu_bound = named(summaries, "optimizations, GPU-bound");
  EXPECT_GE(gpu_bound.cases, 15);
  EXPECT_LE(gpu_bound.mean_gain_error, 0.05);
  EXPECT_LE(gpu_bound.largest_gain_error, 0.15);
  EXPECT_EQ(gpu_bound.measured_signs.right, gpu_bound.measured_signs.all);
  EXPECT_EQ(gpu_bound.predicted_signs.right, gpu_bound.predicted_signs.all);

  const WhatIfSummary& batches = named(summaries, "batch sizes");
  EXPECT_GE(batches.cases, 10);
  EXPECT_LE(batches.mean_gain_error, 0.07);
  EXPECT_LE(batches.largest_gain_error, 0.25);
}

}  // namespace
}  // namespace forerun
