#include "cost/hybrid/spread.h"

#include <gtest/gtest.h>

#include "base/data_dir.h"

namespace forerun {
namespace {

TEST(Spread, IsWiderOnAnotherGpu) {
  const Spread spread{.gpu_bound = {0.9, 1.2}, .host_bound = {0.8, 1.5}, .other_gpu = 2};
  EXPECT_DOUBLE_EQ(spread_of(spread, false, true).low, 0.9);
  EXPECT_DOUBLE_EQ(spread_of(spread, false, false).low, 0.81);
  EXPECT_DOUBLE_EQ(spread_of(spread, true, false).high, 2.25);
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
