// The exact choice against trying all possibilities, ties included.
#include "cluster/choice_knapsack.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun::cluster {
namespace {

struct Tried {
  int64_t total = -1;
  std::vector<int> picks;
};

// All picks in the order of preference: the first option of the first chooser first, none last.
void try_all(const std::vector<KnapsackChooser>& choosers, std::vector<int32_t>& room, std::vector<int>& picks,
             int64_t sum, Tried& best) {
  const size_t i = picks.size();
  if (i == choosers.size()) {
    if (sum > best.total) best = {sum, picks};
    return;
  }
  for (size_t k = 0; k <= choosers[i].size(); ++k) {
    const bool none = k == choosers[i].size();
    const KnapsackOption option = none ? KnapsackOption{0, 0, 0} : choosers[i][k];
    if (option.gpus > room[option.type]) continue;
    room[option.type] -= option.gpus;
    picks.push_back(none ? -1 : static_cast<int>(k));
    try_all(choosers, room, picks, sum + option.value, best);
    picks.pop_back();
    room[option.type] += option.gpus;
  }
}

Tried tried(const std::vector<KnapsackChooser>& choosers, std::vector<int32_t> room) {
  Tried best;
  std::vector<int> picks;
  try_all(choosers, room, picks, 0, best);
  return best;
}

TEST(ChoiceKnapsack, EqualsTryingAll) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const size_t types = 1 + random() % 3;
    std::vector<int32_t> room(types);
    for (int32_t& gpus : room) gpus = static_cast<int32_t>(random() % 6);
    const auto unit = static_cast<int32_t>(1 + random() % 2);
    std::vector<KnapsackChooser> choosers(1 + random() % 6);
    for (KnapsackChooser& chooser : choosers) {
      for (uint64_t k = random() % 4; k > 0; --k) {
        chooser.push_back({static_cast<uint32_t>(random() % types), unit * static_cast<int32_t>(1 + random() % 3),
                           static_cast<int64_t>(1 + random() % 4)});
      }
    }
    const auto found = ChoiceKnapsack::solve(choosers, room, 1'000'000);
    ASSERT_TRUE(found);
    const Tried best = tried(choosers, room);
    EXPECT_EQ(found->total(), best.total);
    EXPECT_EQ(found->picks(), best.picks);
    const std::vector<int64_t> without = found->totals_without();
    for (size_t i = 0; i < choosers.size(); ++i) {
      std::vector<KnapsackChooser> others = choosers;
      others[i].clear();
      EXPECT_EQ(without[i], tried(others, room).total);
    }
  }
}

TEST(ChoiceKnapsack, SaysWhenItIsTooMuchWork) {
  const std::vector<KnapsackChooser> choosers(10, {{0, 1, 1}, {1, 1, 1}});
  EXPECT_FALSE(ChoiceKnapsack::solve(choosers, {100, 100}, 1000));
  EXPECT_TRUE(ChoiceKnapsack::solve(choosers, {1'000'000'000, 1'000'000'000}, 10'000));  // none needs more than 10
  EXPECT_TRUE(ChoiceKnapsack::solve({}, {4}, 10));
}

}  // namespace
}  // namespace forerun::cluster
