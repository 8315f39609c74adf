#include "memory/device_memory.h"

#include <gtest/gtest.h>

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
