#include "cost/hybrid/spread.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"

namespace forerun {
namespace {

TEST(Spread, IsNoNarrowerOnAnotherGpu) {
  const Spread spread{.gpu_bound = {0.9, 1.2}, .host_bound = {0.6, 1.5}, .other_gpu = {0.7, 1.7}};
  EXPECT_DOUBLE_EQ(spread_of(spread, false, true).low, 0.9);
  EXPECT_DOUBLE_EQ(spread_of(spread, false, false).low, 0.7);
  EXPECT_DOUBLE_EQ(spread_of(spread, true, false).low, 0.6);
  EXPECT_DOUBLE_EQ(spread_of(spread, true, false).high, 1.7);
}

TEST(Spread, HoldsEightOfTenAndOne) {
  std::vector<double> ratios;
  for (int i = 0; i <= 100; ++i) ratios.push_back(0.7 + 0.01 * ((i * 37) % 101));
  EXPECT_DOUBLE_EQ(range_of(ratios).low, 0.8);
  EXPECT_DOUBLE_EQ(range_of(ratios).high, 1.6);
  EXPECT_DOUBLE_EQ(range_of({1.2, 1.4}).low, 1);
  EXPECT_DOUBLE_EQ(range_of({}).high, 1);
}

TEST(Spread, LoadsWhatItSaved) {
  const std::string file = testing::TempDir() + "/spread_test.json";
  ASSERT_TRUE(save_spread({{0.9, 1.2}, {0.8, 1.5}, {0.5, 2}}, file).ok());
  const auto spread = load_spread(file);
  ASSERT_TRUE(spread.ok()) << spread.error().message();
  EXPECT_DOUBLE_EQ(spread->other_gpu.high, 2);
  ASSERT_TRUE(save_spread({{1.1, 1.2}, {0.8, 1.5}, {0.5, 2}}, file).ok());
  EXPECT_FALSE(load_spread(file).ok());
}

TEST(Spread, LoadsTheOneThatComesAlong) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok());
  const auto spread = load_spread(*folder / "cost" / "spread.json");
  ASSERT_TRUE(spread.ok()) << spread.error().message();
  EXPECT_LT(spread->gpu_bound.low, 1);
  EXPECT_GT(spread->host_bound.high, 1);
}

}  // namespace
}  // namespace forerun
