#include "cost/hybrid/whatif_intervals.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/data_dir.h"

namespace forerun {
namespace {

Result<WhatIfIntervals> intervals_of(const std::string& text) {
  const std::string path = testing::TempDir() + "/whatif_intervals_test.json";
  std::ofstream(path) << text;
  return load_whatif_intervals(path);
}

std::string intervals_text(const std::string& gpu_low, const std::string& noise) {
  return R"({"format": "whatif-intervals/1", "origin": "a test", "gpu_bound": {"low": )" + gpu_low +
         R"(, "high": 1.1}, "host_bound": {"low": 0.7, "high": 1.2}, "elsewhere": {"low": 0.8, "high": 1.3}, "noise": )" +
         noise + "}";
}

TEST(WhatIfIntervals, LoadsTheOneThatComesAlong) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok());
  const auto intervals = load_whatif_intervals(*folder / kWhatIfIntervalsFile);
  ASSERT_TRUE(intervals.ok()) << intervals.error().message();
  EXPECT_LT(intervals->host_bound.low, intervals->gpu_bound.low);
  EXPECT_GT(intervals->noise, 0);
}

TEST(WhatIfIntervals, RefusesWhatIsNoRange) {
  const auto read = intervals_of(intervals_text("0.9", "0.02"));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_DOUBLE_EQ(read->elsewhere.high, 1.3);
  EXPECT_FALSE(intervals_of(intervals_text("1.05", "0.02")).ok());
  EXPECT_FALSE(intervals_of(intervals_text("0.9", "1.5")).ok());
  EXPECT_FALSE(intervals_of(R"({"format": "intervals/1"})").ok());
  std::string unknown = intervals_text("0.9", "0.02");
  unknown.replace(unknown.find(R"("origin": "a test", )"), 20, "");
  EXPECT_FALSE(intervals_of(unknown).ok()) << "without an origin";
}

}  // namespace
}  // namespace forerun
