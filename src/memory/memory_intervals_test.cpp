#include "memory/memory_intervals.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace forerun {
namespace {

TEST(MemoryIntervals, HoldsEightOfTen) {
  std::vector<double> ratios;
  for (int i = 0; i <= 10; ++i) ratios.push_back(0.95 + 0.01 * i);
  const RatioRange range = ratio_range(ratios);
  EXPECT_NEAR(range.low, 0.96, 1e-12);
  EXPECT_NEAR(range.high, 1.04, 1e-12);
}

TEST(MemoryIntervals, AlwaysHoldsThePredictionItself) {
  const RatioRange above = ratio_range({1.2, 1.3, 1.4});
  EXPECT_EQ(above.low, 1);
  EXPECT_NEAR(above.high, 1.38, 1e-12);
  EXPECT_EQ(ratio_range({0.5}).high, 1);
  EXPECT_EQ(ratio_range({}).low, 1);
}

TEST(MemoryIntervals, IsReadAsItIsWritten) {
  const auto file = std::filesystem::temp_directory_path() / "forerun_memory_intervals_test.json";
  const MemoryIntervals intervals{
      .requested = {0.99, 1.01}, .allocated = {0.98, 1.02}, .reserved = {0.9, 1.1}, .driver = {0.95, 1.05}, .runs = 7};
  std::ofstream(file) << to_json(intervals, "a test");
  const auto read = load_memory_intervals(file);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->reserved.low, 0.9);
  EXPECT_EQ(read->driver.high, 1.05);
  EXPECT_EQ(read->runs, 7);
  std::ofstream(file) << R"({"format": "memory-intervals/1", "runs": 1, "requested": {"low": 1.1, "high": 1.2}})";
  EXPECT_FALSE(load_memory_intervals(file).ok());
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace forerun
