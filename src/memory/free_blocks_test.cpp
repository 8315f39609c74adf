#include "memory/free_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace forerun {
namespace {

// Against an ordered map, over many more blocks than a chunk holds.
TEST(FreeBlocks, StaysInOrder) {
  std::mt19937_64 random(7);
  FreeBlocks blocks;
  std::map<std::pair<int64_t, int64_t>, uint32_t> expected;
  for (uint32_t step = 0; step < 20000; ++step) {
    const bool growing = (step / 2500) % 2 == 0;
    if (expected.empty() || random() % 10 < (growing ? 7U : 3U)) {
      const auto size = static_cast<int64_t>(random() % 40) * 512;
      const auto address = static_cast<int64_t>(step) * 512;
      blocks.insert({size, address, step});
      expected[{size, address}] = step;
    } else {
      const auto chosen = std::next(expected.begin(), static_cast<int64_t>(random() % expected.size()));
      blocks.erase(chosen->first.first, chosen->first.second);
      expected.erase(chosen);
    }
    const auto size = static_cast<int64_t>(random() % 42) * 512;
    const auto smallest = expected.lower_bound({size, INT64_MIN});
    const FreeBlock* found = blocks.at(blocks.first_of(size));
    ASSERT_EQ(found == nullptr, smallest == expected.end());
    if (found != nullptr) {
      ASSERT_EQ(found->block, smallest->second);
      const FreeBlock* after = blocks.at(blocks.after(blocks.first_of(size)));
      const auto next = std::next(smallest);
      ASSERT_EQ(after == nullptr, next == expected.end());
      if (after != nullptr) {
        ASSERT_EQ(after->block, next->second);
      }
    }
  }
  auto next = expected.begin();
  blocks.for_each([&](const FreeBlock& block) { EXPECT_EQ(block.block, (next++)->second); });
  EXPECT_EQ(next, expected.end());
}

}  // namespace
}  // namespace forerun
