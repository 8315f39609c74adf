#include "base/recent_results.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>

namespace forerun {
namespace {

using Key = std::array<uint32_t, 3>;

TEST(RecentResults, FindsWhatWasKeptAndNothingElse) {
  constexpr size_t kMost = 50;
  RecentResults<int> recent(3, kMost);
  std::map<Key, int> known;
  std::mt19937 random(5);
  size_t found = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Key key = {static_cast<uint32_t>(random() % 4), 7, static_cast<uint32_t>(random() % 30)};
    if (const auto value = recent.find(key)) {
      ASSERT_TRUE(known.contains(key));
      EXPECT_EQ(*value, known[key]);
      ++found;
    } else {
      known[key] = i;  // another result than before tells whether an old one comes back
      recent.keep(key, i);
    }
    ASSERT_LE(recent.size(), 2 * kMost);
  }
  EXPECT_GT(found, 1000U);
  EXPECT_LT(found, 19'000U);  // some were dropped
}

TEST(RecentResults, KeepsWhatIsAskedForAgain) {
  RecentResults<int> recent(3, 10);
  recent.keep(Key{1, 2, 3}, 5);
  for (uint32_t i = 0; i < 1000; ++i) {
    recent.keep(Key{i, i, 9}, 6);
    ASSERT_EQ(recent.find(Key{1, 2, 3}), 5);
  }
  EXPECT_FALSE(recent.find(Key{0, 0, 9}).has_value());
}

}  // namespace
}  // namespace forerun
