// Sums over rows within a kernel that reduces them: where Inductor takes them along, and of how many blocks they are put together.
#include "compile/mix_order.h"

#include <gtest/gtest.h>

namespace forerun::compile {
namespace {

TEST(MixOrder, ManyRowsThatAreNotCachedAreTakenAlong) {
  EXPECT_TRUE(takes_along(16'384, 768));
  EXPECT_FALSE(takes_along(4096, 768));       // three million elements stay in the cache
  EXPECT_FALSE(takes_along(4096, 4096));      // no more rows than columns
  EXPECT_FALSE(takes_along(2048, 1024));      // few rows
  EXPECT_FALSE(takes_along(65'536, 32'000));  // rows that no block holds
}

TEST(MixOrder, BlocksTakeSixteenToAHundredAndTwentyEightRows) {
  EXPECT_EQ(row_blocks(4096), 256);
  EXPECT_EQ(row_blocks(132 * 8 * 64), 132 * 8);
  EXPECT_EQ(row_blocks(1 << 20), (1 << 20) / 128);
  EXPECT_EQ(row_blocks(4097), 257);
}

}  // namespace
}  // namespace forerun::compile
