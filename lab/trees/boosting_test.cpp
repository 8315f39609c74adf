#include "lab/trees/boosting.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun {
namespace {

// A step in one column, a line in the other.
float rule(float x, float y) { return x > 9 ? 5.0F : y; }

TEST(Boosting, GrowsAForestThatFollowsItsLabels) {
  if (!can_boost()) GTEST_SKIP() << "built without XGBoost";
  BoostingTable table(2);
  for (int i = 0; i < 400; ++i) {
    const float row[] = {static_cast<float>(i % 20), static_cast<float>(i / 20)};
    table.add(row, rule(row[0], row[1]), 1);
  }
  const auto forest = table.grow({.rounds = 60, .depth = 4, .columns = 1, .seed = 3});
  ASSERT_TRUE(forest.ok()) << forest.error().message();
  EXPECT_EQ(forest->tree_count(), 60U);
  double error = 0;
  for (int i = 0; i < 400; ++i) {
    const float row[] = {static_cast<float>(i % 20), static_cast<float>(i / 20)};
    error += std::abs(forest->predict(row) - rule(row[0], row[1])) / 400;
  }
  EXPECT_LT(error, 0.3);
}

TEST(Boosting, EqualRowsCountByTheirWeights) {
  BoostingTable table(1);
  const float row[] = {1};
  const float other[] = {2};
  table.merge(row, 1, 3);
  table.merge(row, 5, 1);
  table.merge(other, 2, 4);
  EXPECT_EQ(table.size(), 2U);
  if (!can_boost()) GTEST_SKIP() << "built without XGBoost";
  const auto forest = table.grow({.rounds = 200, .depth = 2, .rows = 1, .columns = 1, .least_weight = 0});
  ASSERT_TRUE(forest.ok());
  EXPECT_NEAR(forest->predict(row), 2, 0.05);
  EXPECT_NEAR(forest->predict(other), 2, 0.05);
}

TEST(Boosting, NothingToGrowFromIsAnError) { EXPECT_FALSE(BoostingTable(3).grow({}).ok()); }

}  // namespace
}  // namespace forerun
