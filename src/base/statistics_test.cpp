#include "base/statistics.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun {
namespace {

TEST(Statistics, QuantilesAreLinearBetweenNeighbours) {
  const std::vector<double> values = {40, 10, 30, 20};
  EXPECT_EQ(median(values), 25);
  EXPECT_EQ(quantile(values, 0), 10);
  EXPECT_EQ(quantile(values, 1), 40);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 37);  // numpy.quantile([40, 10, 30, 20], 0.9)
  EXPECT_EQ(quantile({7}, 0.3), 7);
  EXPECT_EQ(mean(values), 25);
  EXPECT_EQ(mean({}), 0);
}

TEST(Statistics, OtherDefinitionsPickAMeasuredValue) {
  const std::vector<int> sorted = {1, 2, 3, 10};
  EXPECT_EQ(upper_median(std::vector<int>{10, 1, 3, 2}), 3);
  EXPECT_EQ(upper_median(std::vector<int>{10, 1, 2}), 2);
  EXPECT_EQ(sorted_quantile_nearest(sorted, 0.5), 3);
  EXPECT_EQ(sorted_quantile_lower(sorted, 0.5), 2);
  EXPECT_EQ(sorted_quantile_nearest(sorted, 0.9), 10);
  EXPECT_EQ(sorted_quantile_lower(sorted, 0.9), 3);
}

TEST(Statistics, AnyOrderGivesWhatSortedValuesGive) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> values(1 + random() % 40);
    for (double& value : values) value = static_cast<double>(random() % 100) / 7;
    const double share = static_cast<double>(random() % 101) / 100;
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(quantile(values, share), sorted_quantile(sorted, share));
    EXPECT_EQ(upper_median(values), sorted[sorted.size() / 2]);
  }
}

TEST(StatisticsDeathTest, NothingHasNoMedian) {
  EXPECT_DEATH(median({}), "needs values");
  EXPECT_DEATH(quantile({1}, 1.5), "a share from 0 to 1");
}

}  // namespace
}  // namespace forerun
