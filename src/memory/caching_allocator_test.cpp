#include "memory/caching_allocator.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

struct Bench {
  explicit Bench(const AllocatorSettings& settings = {}, int64_t capacity = DeviceMemory::kPlenty)
      : memory(capacity), allocator(memory, settings) {}
  [[nodiscard]] const AllocatorFigures& now() const { return allocator.figures(); }
  DeviceMemory memory;
  CachingAllocator allocator;
};

TEST(CachingAllocator, RoundsToBlocksOf512Bytes) {
  Bench bench;
  const BlockId one = bench.allocator.allocate(1);
  const BlockId two = bench.allocator.allocate(513);
  EXPECT_EQ(bench.allocator.size(one), 512);
  EXPECT_EQ(bench.allocator.size(two), 1024);
  EXPECT_EQ(bench.now().requested.current, 514);
  EXPECT_EQ(bench.now().allocated.current, 1536);
  EXPECT_EQ(bench.now().reserved.current, 2 * kMebibyte);
}

// Graphs that live hold its addresses: the driver refuses rather than that it goes back.
TEST(CachingAllocator, KeepsThePoolOfCudaGraphs) {
  for (const bool expandable : {false, true}) {
    AllocatorSettings settings;
    settings.expandable_segments = expandable;
    Bench bench(settings, 100 * kMebibyte);
    bench.allocator.keep_segments(1);
    bench.allocator.free(bench.allocator.allocate(60 * kMebibyte, 1));
    EXPECT_FALSE(bench.allocator.allocate(60 * kMebibyte, 0).valid());
    EXPECT_EQ(bench.now().retries, 1);
    bench.allocator.empty_cache();
    EXPECT_EQ(bench.now().reserved.current, 60 * kMebibyte);
    EXPECT_TRUE(bench.allocator.allocate(60 * kMebibyte, 1).valid()) << "its own stream has it again";
    bench.allocator.free(bench.allocator.allocate(20 * kMebibyte, 0));
    bench.allocator.empty_cache();
    EXPECT_EQ(bench.now().reserved.current, 60 * kMebibyte);
  }
}

TEST(CachingAllocator, TakesSegmentsBySize) {
  const std::pair<int64_t, int64_t> cases[] = {{1, 2 * kMebibyte},
                                               {kMebibyte, 2 * kMebibyte},
                                               {kMebibyte + 1, 20 * kMebibyte},
                                               {10 * kMebibyte - 512, 20 * kMebibyte},
                                               {10 * kMebibyte, 10 * kMebibyte},
                                               {21 * kMebibyte + 1, 22 * kMebibyte},
                                               {int64_t{100} << 30, int64_t{100} << 30}};
  for (const auto& [bytes, reserved] : cases) {
    Bench bench;
    EXPECT_TRUE(bench.allocator.allocate(static_cast<uint64_t>(bytes)).valid());
    EXPECT_EQ(bench.now().reserved.current, reserved) << bytes;
  }
}

// The large pool splits only where more than 1 MiB is left: otherwise the block keeps it, and it counts as allocated.
TEST(CachingAllocator, KeepsSmallRestsOfLargeBlocks) {
  Bench bench;
  const BlockId block = bench.allocator.allocate(static_cast<uint64_t>(21 * kMebibyte));
  EXPECT_EQ(bench.allocator.size(block), 22 * kMebibyte);
  EXPECT_EQ(bench.now().allocated.current, 22 * kMebibyte);
  EXPECT_EQ(bench.now().inactive_split, 0);
}

TEST(CachingAllocator, TakesTheBestFitAndTheLowestOfEquals) {
  Bench bench;
  std::vector<BlockId> blocks;
  for (const int64_t kib : {64, 32, 48, 32, 64}) {
    blocks.push_back(bench.allocator.allocate(static_cast<uint64_t>(kib) << 10));
    (void)bench.allocator.allocate(512);  // keeps them apart
  }
  const int64_t second = bench.allocator.address(blocks[1]);
  const int64_t fourth = bench.allocator.address(blocks[3]);
  for (const BlockId block : blocks) bench.allocator.free(block);
  EXPECT_EQ(bench.allocator.address(bench.allocator.allocate(30 << 10)), second);
  EXPECT_EQ(bench.allocator.address(bench.allocator.allocate(32 << 10)), fourth);
}

TEST(CachingAllocator, MergesNeighboursInAnyOrderOfFrees) {
  const std::array<size_t, 3> orders[] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
  for (const auto& order : orders) {
    Bench bench;
    std::array<BlockId, 3> blocks;
    for (BlockId& block : blocks) block = bench.allocator.allocate(static_cast<uint64_t>(2 * kMebibyte));
    for (const size_t i : order) bench.allocator.free(blocks[i]);
    EXPECT_EQ(bench.now().inactive_split, 0);
    bench.allocator.empty_cache();
    EXPECT_EQ(bench.now().reserved.current, 0);
    EXPECT_EQ(bench.now().segments.current, 0);
  }
}

TEST(CachingAllocator, KeepsStreamsApart) {
  Bench bench;
  for (int64_t stream = 0; stream < 4000; ++stream) bench.allocator.free(bench.allocator.allocate(512, stream));
  EXPECT_EQ(bench.now().segments.current, 4000);
  for (int64_t stream = 0; stream < 4000; ++stream) bench.allocator.free(bench.allocator.allocate(512, stream));
  EXPECT_EQ(bench.now().segments.current, 4000);
  bench.allocator.empty_cache();
  EXPECT_EQ(bench.now().reserved.current, 0);
}

TEST(CachingAllocator, HoldsAFreedBlockUntilOtherStreamsAreDone) {
  Bench bench;
  const BlockId block = bench.allocator.allocate(512, 1);
  const int64_t held = bench.allocator.address(block);
  bench.allocator.record_stream(block, 1);  // its own: nothing to wait for
  bench.allocator.record_stream(block, 2);
  bench.allocator.free(block);
  EXPECT_EQ(bench.now().allocated.current, 0);
  EXPECT_EQ(bench.now().active.current, 512);
  EXPECT_NE(bench.allocator.address(bench.allocator.allocate(512, 1)), held);
  bench.allocator.complete(block);
  EXPECT_EQ(bench.now().active.current, 512);
  const BlockId again = bench.allocator.allocate(512, 1);
  EXPECT_EQ(bench.allocator.address(again), held);
}

TEST(CachingAllocator, GivesUnusedSegmentsBackBeforeItFails) {
  Bench bench({}, 100 * kMebibyte);
  bench.allocator.free(bench.allocator.allocate(static_cast<uint64_t>(60 * kMebibyte)));
  EXPECT_TRUE(bench.allocator.allocate(static_cast<uint64_t>(80 * kMebibyte)).valid());
  EXPECT_EQ(bench.now().retries, 1);
  EXPECT_EQ(bench.now().reserved.current, 80 * kMebibyte);
  EXPECT_EQ(bench.now().reserved.peak, 80 * kMebibyte);
  EXPECT_FALSE(bench.allocator.allocate(static_cast<uint64_t>(30 * kMebibyte)).valid());
  EXPECT_EQ(bench.now().out_of_memory, 1);
  EXPECT_EQ(bench.now().retries, 2);
}

TEST(CachingAllocator, AnswersSenselessSizes) {
  Bench bench;
  EXPECT_FALSE(bench.allocator.allocate(0).valid());
  EXPECT_EQ(bench.now(), AllocatorFigures{});
  EXPECT_FALSE(bench.allocator.allocate(uint64_t{1} << 63).valid());
  EXPECT_FALSE(bench.allocator.allocate(~uint64_t{0}).valid());
  EXPECT_EQ(bench.now().out_of_memory, 2);
  EXPECT_EQ(bench.now().reserved.current, 0);
}

TEST(CachingAllocator, NeverSplitsBlocksAboveTheLimit) {
  AllocatorSettings settings;
  settings.max_split_size = 64 * kMebibyte;
  Bench bench(settings, 190 * kMebibyte);
  bench.allocator.free(bench.allocator.allocate(static_cast<uint64_t>(100 * kMebibyte)));
  const BlockId small = bench.allocator.allocate(static_cast<uint64_t>(30 * kMebibyte));  // not from the oversize block
  EXPECT_EQ(bench.now().reserved.current, 130 * kMebibyte);
  const BlockId near =
      bench.allocator.allocate(static_cast<uint64_t>(90 * kMebibyte));  // within the 20 MiB of tolerance
  EXPECT_EQ(bench.allocator.size(near), 100 * kMebibyte);
  bench.allocator.free(near);
  (void)bench.allocator.allocate(
      static_cast<uint64_t>(76 * kMebibyte));  // too small for it: the oversize block goes back
  EXPECT_EQ(bench.now().retries, 0);
  EXPECT_EQ(bench.now().reserved.current, 106 * kMebibyte);
  bench.allocator.free(small);
}

TEST(CachingAllocator, CollectsGarbageAboveTheThreshold) {
  AllocatorSettings settings;
  settings.garbage_collection_threshold = 0.5;
  settings.memory_limit = 200 * kMebibyte;
  Bench bench(settings);
  bench.allocator.free(bench.allocator.allocate(static_cast<uint64_t>(60 * kMebibyte)));
  bench.allocator.free(bench.allocator.allocate(static_cast<uint64_t>(80 * kMebibyte)));
  (void)bench.allocator.allocate(static_cast<uint64_t>(90 * kMebibyte));
  EXPECT_EQ(bench.now().reserved.current, 170 * kMebibyte);  // the 60 MiB lay unused for longer
  EXPECT_EQ(bench.now().retries, 0);
}

TEST(CachingAllocator, GrowsExpandableSegmentsByPages) {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  Bench bench(settings, 1000 * kMebibyte);
  const BlockId first = bench.allocator.allocate(static_cast<uint64_t>(30 * kMebibyte));
  EXPECT_EQ(bench.now().reserved.current, 40 * kMebibyte);
  const BlockId second = bench.allocator.allocate(static_cast<uint64_t>(15 * kMebibyte));  // 10 MiB are there
  EXPECT_EQ(bench.now().reserved.current, 60 * kMebibyte);
  EXPECT_EQ(bench.allocator.address(second) - bench.allocator.address(first), 30 * kMebibyte);
  bench.allocator.free(first);
  const BlockId third = bench.allocator.allocate(static_cast<uint64_t>(50 * kMebibyte));  // grows behind the second
  EXPECT_EQ(bench.now().reserved.current, 100 * kMebibyte);
  EXPECT_EQ(bench.now().segments.current, 0);
  bench.allocator.free(second);
  bench.allocator.free(third);
  bench.allocator.empty_cache();
  EXPECT_EQ(bench.now().reserved.current, 0);
  EXPECT_EQ(bench.memory.used(), 0);
}

}  // namespace
}  // namespace forerun
