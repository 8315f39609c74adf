#include "lab/dataset/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun::learn {
namespace {

TEST(Errors, ByHand) {
  const std::vector<PredictedPair> pairs = {{100, 110}, {200, 160}, {50, 50}, {10, 13}};
  const ErrorSummary errors = summarize(pairs);  // 0.1, 0.2, 0, 0.3
  EXPECT_EQ(errors.count, 4);
  EXPECT_NEAR(errors.mre, 0.15, 1e-12);
  EXPECT_NEAR(errors.median, 0.15, 1e-12);
  EXPECT_NEAR(errors.p90, 0.27, 1e-12);  // 0.7 of the way from 0.2 to 0.3
  EXPECT_NEAR(errors.bias, (0.1 - 0.2 + 0.3) / 4, 1e-12);
  EXPECT_NEAR(errors.rmse, std::sqrt((100.0 + 1600 + 9) / 4), 1e-12);
}

TEST(Errors, OfNothingAreZeroAndWhatWasNotMeasuredIsLeftOut) {
  EXPECT_EQ(summarize({}).count, 0);
  const std::vector<PredictedPair> pairs = {{0, 5}, {std::nan(""), 5}, {4, 5}};
  EXPECT_EQ(summarize(pairs).count, 1);
  EXPECT_NEAR(summarize(pairs).mre, 0.25, 1e-12);
}

TEST(Errors, AreToldApartByBoundFamilyAndLength) {
  DataSet data;
  OpRow row;
  row.name = data.intern_name("op");
  const uint32_t op = data.intern(row);
  const auto add = [&](const char* group, double ms, double busy, size_t ops) {
    Example example{.group = group, .ops = std::vector<uint32_t>(ops, op)};
    example.targets.iteration_ms = ms;
    example.targets.gpu_busy_ms = busy;
    data.add(std::move(example));
  };
  add("vgg", 100, 95, 100);   // GPU-bound
  add("vgg", 100, 50, 650);   // host-bound
  add("swin", 100, 20, 950);  // host-bound
  add("swin", 0, 0, 950);     // not measured
  const std::vector<Prediction> predictions = {
      {.iteration_ms = 110}, {.iteration_ms = 120}, {.iteration_ms = 60}, {.iteration_ms = 60}};
  const Evaluation evaluation = evaluate(data, {0, 1, 2, 3}, predictions, Target::iteration_ms);
  EXPECT_EQ(evaluation.all.count, 3);
  ASSERT_EQ(evaluation.by_bound.size(), 2U);
  EXPECT_EQ(evaluation.by_bound[0].key, "gpu");
  EXPECT_NEAR(evaluation.by_bound[0].errors.mre, 0.1, 1e-12);
  EXPECT_NEAR(evaluation.by_bound[1].errors.mre, 0.3, 1e-12);
  ASSERT_EQ(evaluation.by_group.size(), 2U);
  EXPECT_EQ(evaluation.by_group[1].key, "vgg");
  EXPECT_NEAR(evaluation.by_group[1].errors.mre, 0.15, 1e-12);
  ASSERT_EQ(evaluation.by_length.size(), 3U);
  EXPECT_EQ(evaluation.by_length[2].key, "900+");
  EXPECT_EQ(evaluate(data, {0, 1, 2, 3}, predictions, Target::peak_bytes).all.count, 0);
  ASSERT_EQ(evaluation.ratios.size(), 21U);  // 0.6, 1.1 and 1.2 at 0, 50 and 100 %
  EXPECT_NEAR(evaluation.ratios.front(), 0.6, 1e-12);
  EXPECT_NEAR(evaluation.ratios[10], 1.1, 1e-12);
  EXPECT_NEAR(evaluation.ratios[5], 0.85, 1e-12);
  EXPECT_NEAR(evaluation.ratios.back(), 1.2, 1e-12);
}

}  // namespace
}  // namespace forerun::learn
