#include "memory/device_memory.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(DeviceMemory, GoesDownByRangesAndUpWithinThem) {
  DeviceMemory memory;
  const int64_t first = *memory.allocate(14 * kMiB);
  EXPECT_EQ(*memory.allocate(14 * kMiB), first + 14 * kMiB);
  EXPECT_EQ(*memory.allocate(70 * kMiB), first - 96 * kMiB);
  EXPECT_EQ(*memory.allocate(20 * kMiB), first - 26 * kMiB);  // what the 70 MiB left
  EXPECT_EQ(*memory.allocate(2 * kMiB), first - 6 * kMiB);
}

TEST(DeviceMemory, GivesOutAgainWhatCameBack) {
  DeviceMemory memory;
  const int64_t lower = *memory.allocate(16 * kMiB);
  const int64_t upper = *memory.allocate(16 * kMiB);
  memory.release(lower, 16 * kMiB);
  memory.release(upper, 16 * kMiB);
  EXPECT_EQ(memory.used(), 0);
  EXPECT_EQ(*memory.allocate(32 * kMiB), lower);  // joined
}

TEST(DeviceMemory, RefusesWhatExceedsTheCapacity) {
  DeviceMemory memory(100 * kMiB);
  const int64_t address = *memory.allocate(60 * kMiB);
  EXPECT_FALSE(memory.allocate(41 * kMiB).has_value());
  EXPECT_FALSE(memory.map(memory.reserve(1000 * kMiB), 41 * kMiB));
  memory.release(address, 60 * kMiB);
  EXPECT_TRUE(memory.allocate(100 * kMiB).has_value());
}

TEST(DeviceMemory, ReservesAddressesInWholePages) {
  DeviceMemory memory;
  (void)memory.allocate(2 * kMiB);
  EXPECT_EQ(memory.reserve(1000 * kMiB) % SegmentSource::kSpaceStep, 0);
  EXPECT_EQ(memory.used(), 2 * kMiB);
}

}  // namespace
}  // namespace forerun
