#include "cost/calibrated/gpu_correction.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun {
namespace {

using hybrid::FeatureRow;
using hybrid::Model;

FeatureRow row_of(Model model, std::string_view op, double size) {
  FeatureRow row{.model = model, .op = op, .analytic_us = size};
  row.columns[1] = static_cast<float>(std::log2(size));
  row.columns[2] = static_cast<float>(size);
  return row;
}

// Read at `ratio` times its default.
ReadOp read(Model model, std::string_view op, double size, double ratio) {
  return {.rows = {row_of(model, op, size)}, .names = {std::string(op)}, .us = size * ratio, .default_us = size};
}

TEST(GpuCorrection, IsExactAtTheReadings) {
  std::vector<ReadOp> ops;
  for (int i = 1; i <= 40; ++i) ops.push_back(read(Model::gemm, "mm", 10.0 * i, i % 2 == 0 ? 2.0 : 1.5));
  const GpuCorrection correction = GpuCorrection::fitted(ops);
  for (const ReadOp& op : ops) {
    EXPECT_NEAR(correction.log_factor(op.rows[0]), std::log(op.us / op.default_us), 1e-5);
  }
}

TEST(GpuCorrection, AReadingOfAnIterationCountsBeforeOneOfTheOpAlone) {
  for (const bool first : {true, false}) {
    std::vector<ReadOp> ops;
    for (int i = 1; i <= 40; ++i) ops.push_back(read(Model::elementwise, "add", 10.0 * i, 1.2));
    ReadOp within = ops.back();
    within.us = 0.5 * within.default_us;
    within.within = true;
    const FeatureRow asked = within.rows[0];
    ops.insert(first ? ops.begin() : ops.end(), within);
    EXPECT_NEAR(GpuCorrection::fitted(ops).log_factor(asked), std::log(0.5), 1e-5);
  }
}

TEST(GpuCorrection, FewReadingsChangeOthersLittleAndManyAllTheWay) {
  const FeatureRow asked = row_of(Model::elementwise, "add", 35);
  double before = 0;
  for (const int count : {0, 1, 5, 60}) {
    std::vector<ReadOp> ops;
    for (int i = 0; i < count; ++i) ops.push_back(read(Model::elementwise, "add", 30 + 0.1 * i, 2.0));
    const double factor = GpuCorrection::fitted(ops).log_factor(asked);
    EXPECT_GE(factor, before);
    EXPECT_LE(factor, std::log(2.0) + 1e-6);
    if (count == 0) {
      EXPECT_EQ(factor, 0);
    }
    if (count == 1) {
      EXPECT_LT(factor, 0.6 * std::log(2.0));
    }
    before = factor;
  }
  EXPECT_NEAR(before, std::log(2.0), 0.05);
}

TEST(GpuCorrection, AKindThatWasNotReadGetsNoMoreThanTheMeanOfTheOthers) {
  std::vector<ReadOp> ops;
  for (int i = 1; i <= 50; ++i) ops.push_back(read(Model::gemm, "mm", 10.0 * i, 3.0));
  const GpuCorrection correction = GpuCorrection::fitted(ops);
  const double pooling = correction.log_factor(row_of(Model::pooling, "max_pool2d", 20));
  EXPECT_GT(pooling, 0);
  EXPECT_LE(pooling, correction.overall() + 1e-12);
  EXPECT_LT(pooling, 0.5 * std::log(3.0));  // one kind says little of all
}

TEST(GpuCorrection, TellsSizesApart) {
  std::vector<ReadOp> ops;
  for (int i = 0; i < 200; ++i) {
    const double size = std::exp2(i / 20.0);
    ops.push_back(read(Model::copy, "clone", size, size < 32 ? 0.5 : 2.0));
  }
  const GpuCorrection correction = GpuCorrection::fitted(ops);
  EXPECT_NEAR(correction.log_factor(row_of(Model::copy, "clone", 5.3)), std::log(0.5), 0.1);
  EXPECT_NEAR(correction.log_factor(row_of(Model::copy, "clone", 300.7)), std::log(2.0), 0.1);
}

TEST(GpuCorrection, UselessReadingsAreNoReadings) {
  EXPECT_EQ(GpuCorrection::fitted({{}, {.rows = {row_of(Model::gemm, "mm", 1)}, .names = {"mm"}}}).readings(), 0U);
  const GpuCorrection wild = GpuCorrection::fitted({read(Model::gemm, "mm", 10, 1e9)});
  EXPECT_LE(wild.log_factor(row_of(Model::gemm, "mm", 10)), 4 + 1e-6);
}

TEST(Boosting, IsTheSameEveryTimeAndHeldByItsRidge) {
  std::vector<float> rows;
  std::vector<double> targets;
  std::vector<double> weights;
  for (int i = 0; i < 300; ++i) {
    rows.insert(rows.end(), {static_cast<float>(i % 7), static_cast<float>(i), 1.0F});
    targets.push_back(i < 150 ? -1.0 : 1.0);
    weights.push_back(1);
  }
  const Forest one = grow(rows, 3, targets, weights, 0);
  const Forest two = grow(rows, 3, targets, weights, 0);
  EXPECT_EQ(one.predict_all(rows, 3), two.predict_all(rows, 3));
  EXPECT_NEAR(one.predict(std::array{3.0F, 20.0F, 1.0F}), -1, 0.05);
  EXPECT_NEAR(one.predict(std::array{3.0F, 280.0F, 1.0F}), 1, 0.05);
  const Forest held = grow(rows, 3, targets, weights, 0, {.rounds = 1, .rate = 1, .ridge = 1e9});
  EXPECT_NEAR(held.predict(std::array{3.0F, 20.0F, 1.0F}), 0, 1e-5);
}

TEST(Boosting, RowsThatCannotBeSplitLeaveTheBase) {
  const std::vector<float> equal(20, 5.0F);
  const std::vector<double> targets(20, 0.7);
  const std::vector<double> weights(20, 1.0);
  EXPECT_EQ(grow(equal, 1, targets, weights, 0.25).predict(std::array{5.0F}), 0.25F);
  const std::vector<float> few = {1.0F, 2.0F, 3.0F};
  EXPECT_EQ(grow(few, 1, std::array{-1.0, 0.0, 1.0}, std::array{1.0, 1.0, 1.0}, 0.25).tree_count(), 0U);
  EXPECT_EQ(grow({}, 1, {}, {}, 0.25).predict(std::array{5.0F}), 0.25F);
}

}  // namespace
}  // namespace forerun
