// FreeProfile against counting GPUs second by second.
#include "cluster/free_profile.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun::cluster {
namespace {

TEST(FreeProfile, EqualsCountingSecondBySecond) {
  constexpr int64_t kEnd = 400;
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<int32_t> free(kEnd, 4);
    FreeProfile profile(Time(0), 4);
    for (int i = 0; i < 8; ++i) {
      const auto at = static_cast<int64_t>(random() % 50);
      profile.release(Time(at), 1);
      for (int64_t t = at; t < kEnd; ++t) ++free[static_cast<size_t>(t)];
    }
    for (int i = 0; i < 20; ++i) {
      const auto gpus = static_cast<int32_t>(random() % 12 + 1);
      const auto length = static_cast<int64_t>(random() % 15 + 1);
      int64_t earliest = 0;
      const auto fits = [&](int64_t from) {
        for (int64_t t = from; t < from + length; ++t) {
          if (free[static_cast<size_t>(t)] < gpus) return false;
        }
        return true;
      };
      while (!fits(earliest)) ++earliest;
      ASSERT_EQ(profile.earliest(gpus, Time(length)).value, earliest) << "round " << round << ", job " << i;
      profile.reserve(Time(earliest), Time(length), gpus);
      for (int64_t t = earliest; t < earliest + length; ++t) free[static_cast<size_t>(t)] -= gpus;
    }
    EXPECT_EQ(profile.earliest(13, Time(1)), kNever);
  }
}

}  // namespace
}  // namespace forerun::cluster
