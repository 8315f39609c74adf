// Sizes are from allocator traces of an H200.
#include "memory/reduction_buffer.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(ReductionBuffer, MatchesRecordedColumnSums) {
  const ReductionBuffer short_rows = reduction_buffer({.outputs = 96, .inputs = 9053, .output_multiple = 96});
  EXPECT_EQ(short_rows.partial, 1744896);
  EXPECT_EQ(short_rows.counters, 8);
  const ReductionBuffer longer_rows = reduction_buffer({.outputs = 192, .inputs = 3136, .output_multiple = 192});
  EXPECT_EQ(longer_rows.partial, 4816896);
  EXPECT_EQ(longer_rows.counters, 8);
}

TEST(ReductionBuffer, IsNotNeededForFewValuesOrManyResults) {
  EXPECT_EQ(reduction_buffer({.outputs = 1024, .inputs = 100, .output_multiple = 1024}).partial, 0);
  EXPECT_EQ(reduction_buffer({.outputs = 1 << 24, .inputs = 5000, .output_multiple = 1 << 24}).partial, 0);
  EXPECT_EQ(reduction_buffer({.outputs = 0, .inputs = 100}).partial, 0);
}

TEST(ReductionBuffer, IsSmallWhereLanesCombine) {
  const ReductionBuffer whole =
      reduction_buffer({.outputs = 1, .inputs = 1 << 24, .along_fastest = true, .whole = true, .output_multiple = 1});
  EXPECT_EQ(whole.partial, 4 * 528);  // a float a block, 132 multiprocessors with 4 blocks each
  EXPECT_EQ(whole.counters, 4);
}

TEST(ReductionBuffer, GrowsWithTheGpu) {
  const Reduction reduction{.outputs = 64, .inputs = 1 << 20, .output_multiple = 64};
  EXPECT_GT(reduction_buffer(reduction, {.multiprocessors = 132}).partial,
            reduction_buffer(reduction, {.multiprocessors = 40}).partial);
}

}  // namespace
}  // namespace forerun
