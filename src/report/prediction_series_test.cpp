#include "report/prediction_series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

namespace forerun {
namespace {

MemoryTimeline random_timeline(unsigned seed, size_t samples) {
  std::mt19937 random(seed);
  MemoryTimeline timeline;
  for (size_t i = 0; i < samples; ++i) {
    MemorySample sample{.at = static_cast<double>(i)};
    for (int64_t& live : sample.live) live = static_cast<int64_t>(random() % 1000);
    timeline.samples.push_back(sample);
    if (sample.total() > timeline.samples[timeline.peak].total()) timeline.peak = i;
  }
  return timeline;
}

TEST(PredictionSeries, ThinnedTimelinesKeepThePeakAndTheOrder) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const MemoryTimeline whole = random_timeline(seed, 1 + seed * 97);
    for (const size_t most : {1, 7, 100, 5000}) {
      const MemoryTimeline few = thinned(whole, most);
      EXPECT_LE(few.samples.size(), std::max<size_t>(most, 1));
      EXPECT_EQ(few.samples[few.peak].at, whole.samples[whole.peak].at);
      EXPECT_EQ(few.samples[few.peak].total(), whole.samples[whole.peak].total());
      EXPECT_TRUE(std::is_sorted(few.samples.begin(), few.samples.end(),
                                 [](const MemorySample& a, const MemorySample& b) { return a.at < b.at; }));
      if (whole.samples.size() <= most) {
        EXPECT_EQ(few.samples.size(), whole.samples.size());
      }
    }
  }
}

TEST(PredictionSeries, ColumnsHaveAnEntryEach) {
  const MemoryTimeline timeline = random_timeline(1, 20);
  const auto told = nlohmann::json::parse(to_json(timeline, Prediction{}));
  EXPECT_EQ(told["schema"], "forerun.memory/1");
  EXPECT_EQ(told["peak"], timeline.peak);
  for (const auto& [name, values] : told["columns"].items()) EXPECT_EQ(values.size(), 20U) << name;
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(told["columns"]["allocated"][i], timeline.samples[i].total());
}

}  // namespace
}  // namespace forerun
