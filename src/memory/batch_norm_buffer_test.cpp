#include "memory/batch_norm_buffer.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(BatchNormBuffer, IsWhatBlocksShare) {
  const BatchNormSums sums = batch_norm_sums(128 * 14 * 14, 137, false);
  EXPECT_EQ(sums.staging + sums.counters, 214836);  // as measured
  EXPECT_EQ(batch_norm_sums(136 * 68 * 68, 256, false).staging, 524288);
  EXPECT_EQ(batch_norm_sums(136 * 68 * 68, 256, true).staging, 262144);
}

TEST(BatchNormBuffer, IsNothingWhereBlocksAreFew) {
  EXPECT_EQ(batch_norm_sums(8 * 6 * 6, 64, false).staging, 0);
  EXPECT_EQ(batch_norm_sums(0, 64, false).staging, 0);
}

// Requested by cuDNN 9.19 on an H200.
TEST(BatchNormBuffer, KnowsCudnn) {
  const auto expect_near = [](int64_t rows, int64_t channels, bool backward, double bytes) {
    EXPECT_NEAR(static_cast<double>(cudnn_batch_norm_workspace(rows, channels, backward)) / bytes, 1, 0.005)
        << rows << " x " << channels;
  };
  expect_near(112 * 160 * 160, 64, false, 23117876);
  expect_near(112 * 160 * 160, 64, true, 15292964);
  expect_near(60 * 160 * 160, 12, false, 12385076);
  expect_near(4 * 48 * 48, 2286, false, 2719788);
  expect_near(4 * 48 * 48, 2286, true, 1758812);
  EXPECT_EQ(cudnn_batch_norm_workspace(0, 8, false), 0);
}

}  // namespace
}  // namespace forerun
