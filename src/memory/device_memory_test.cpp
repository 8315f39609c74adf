#include "memory/device_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "memory/allocator_settings.h"

namespace forerun {
namespace {

TEST(DeviceMemory, GoesDownByRangesAndUpWithinThem) {
  DeviceMemory memory;
  const int64_t first = *memory.allocate(14 * kMebibyte);
  EXPECT_EQ(*memory.allocate(14 * kMebibyte), first + 14 * kMebibyte);
  EXPECT_EQ(*memory.allocate(70 * kMebibyte), first - 96 * kMebibyte);
  EXPECT_EQ(*memory.allocate(20 * kMebibyte), first - 26 * kMebibyte);  // what the 70 MiB left
  EXPECT_EQ(*memory.allocate(2 * kMebibyte), first - 6 * kMebibyte);
}

TEST(DeviceMemory, GivesOutAgainWhatCameBack) {
  DeviceMemory memory;
  const int64_t lower = *memory.allocate(16 * kMebibyte);
  const int64_t upper = *memory.allocate(16 * kMebibyte);
  memory.release(lower, 16 * kMebibyte);
  memory.release(upper, 16 * kMebibyte);
  EXPECT_EQ(memory.used(), 0);
  EXPECT_EQ(*memory.allocate(32 * kMebibyte), lower);  // joined
}

// All holes in a plain list, looked at one by one.
class PlainMemory {
 public:
  int64_t allocate(int64_t bytes) {
    const auto fits = [&](const auto& hole) { return hole.second >= bytes; };
    auto hole = std::find_if(holes_.begin(), holes_.end(), fits);
    if (hole == holes_.end()) {
      const int64_t size = round_up(bytes, 32 * kMebibyte);
      lowest_ -= size;
      hole = holes_.emplace(holes_.begin(), lowest_, size);
    }
    const int64_t address = hole->first;
    *hole = {address + bytes, hole->second - bytes};
    std::erase_if(holes_, [](const auto& empty) { return empty.second == 0; });
    return address;
  }
  // What comes back joins the holes that it touches.
  void release(int64_t address, int64_t bytes) {
    std::pair<int64_t, int64_t> joined = {address, bytes};
    for (const auto& [first, size] : holes_) {
      if (first != address + bytes && first + size != address) continue;
      joined = {std::min(first, joined.first), joined.second + size};
    }
    std::erase_if(holes_, [&](const auto& hole) {
      return hole.first >= joined.first && hole.first < joined.first + joined.second;
    });
    holes_.push_back(joined);
    std::sort(holes_.begin(), holes_.end());
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> holes_;  // address and bytes, in order
  int64_t lowest_ = int64_t{1} << 60;
};

TEST(DeviceMemory, TakesTheLowestHoleAsThePlainTwinDoes) {
  constexpr int64_t kPage = 2 * kMebibyte;
  for (const uint64_t seed : {1, 2, 3}) {
    std::mt19937_64 random(seed);
    DeviceMemory memory;
    PlainMemory plain;
    std::vector<std::pair<int64_t, int64_t>> held;  // address and pages
    for (int i = 0; i < 600; ++i) {
      if (!held.empty() && random() % 5 < 2) {
        std::swap(held[random() % held.size()], held.back());
        const auto [address, pages] = held.back();
        held.pop_back();
        memory.release(address, pages * kPage);
        plain.release(address, pages * kPage);
        continue;
      }
      const auto pages = static_cast<int64_t>(1 + random() % (random() % 4 == 0 ? 40 : 8));
      const int64_t address = *memory.allocate(pages * kPage);
      ASSERT_EQ(address, plain.allocate(pages * kPage)) << seed << ", step " << i;
      held.emplace_back(address, pages);
    }
  }
}

TEST(DeviceMemory, RefusesWhatExceedsTheCapacity) {
  DeviceMemory memory(100 * kMebibyte);
  const int64_t address = *memory.allocate(60 * kMebibyte);
  EXPECT_FALSE(memory.allocate(41 * kMebibyte).has_value());
  EXPECT_FALSE(memory.map(memory.reserve(1000 * kMebibyte), 41 * kMebibyte));
  memory.release(address, 60 * kMebibyte);
  EXPECT_TRUE(memory.allocate(100 * kMebibyte).has_value());
}

TEST(DeviceMemory, HoldsPetabytesWithoutOverflow) {
  DeviceMemory memory;
  EXPECT_FALSE(memory.allocate(DeviceMemory::kPlenty + 1).has_value());
  int64_t lowest = *memory.allocate(kMebibyte);
  for (int i = 0; i < 60; ++i) {
    const int64_t address = *memory.allocate(DeviceMemory::kPlenty / 64);
    EXPECT_GT(address, 0);
    EXPECT_LT(address, lowest);
    lowest = address;
  }
  EXPECT_FALSE(memory.allocate(DeviceMemory::kPlenty / 8).has_value());
}

TEST(DeviceMemory, ReservesAddressesInWholePages) {
  DeviceMemory memory;
  (void)memory.allocate(2 * kMebibyte);
  EXPECT_EQ(memory.reserve(1000 * kMebibyte) % SegmentSource::kSpaceStep, 0);
  EXPECT_EQ(memory.used(), 2 * kMebibyte);
}

}  // namespace
}  // namespace forerun
