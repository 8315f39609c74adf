// Holds the fast allocator to the plain one on random requests, under every setting.
#include "memory/reference_allocator.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun {
namespace {

struct Case {
  const char* name;
  AllocatorSettings settings;
  int64_t capacity = DeviceMemory::kPlenty;
  bool tight = true;  // memory runs out now and then
};

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"plenty", {}, DeviceMemory::kPlenty, false});
  all.push_back({"tight", {}, 300 * kMebibyte});
  AllocatorSettings split;
  split.max_split_size = 24 * kMebibyte;
  all.push_back({"max_split_size", split, 400 * kMebibyte});
  AllocatorSettings powers;
  powers.roundup_power2_divisions.fill(4);
  all.push_back({"roundup", powers, 500 * kMebibyte});
  AllocatorSettings garbage;
  garbage.garbage_collection_threshold = 0.6;
  garbage.memory_limit = 400 * kMebibyte;
  all.push_back({"garbage", garbage, DeviceMemory::kPlenty});
  AllocatorSettings expandable;
  expandable.expandable_segments = true;
  all.push_back({"expandable", expandable, DeviceMemory::kPlenty, false});
  all.push_back({"expandable, tight", expandable, 260 * kMebibyte});
  AllocatorSettings everything = split;
  everything.expandable_segments = true;
  everything.garbage_collection_threshold = 0.5;
  everything.memory_limit = 300 * kMebibyte;
  all.push_back({"all at once", everything, 400 * kMebibyte});
  return all;
}

// Sizes around every limit, and repeated ones so that cached blocks are found again.
uint64_t draw_size(std::mt19937_64& random) {
  const auto below = [&](uint64_t limit) { return random() % limit; };
  const uint64_t mib = kMebibyte;
  switch (below(8)) {
    case 0: return below(4096);
    case 1: return 512 * (1 + below(8));
    case 2: return below(mib) + 1;
    case 3: return mib - 512 + below(1024);
    case 4: return (1 + below(20)) * mib;
    case 5: return below(12 * mib) + mib;
    case 6: return 8 * mib + below(4) * mib;
    default: return below(60 * mib);
  }
}

class Twins {
 public:
  Twins(const Case& given, uint64_t seed)
      : fast_memory_(given.capacity),
        plain_memory_(given.capacity),
        fast_(fast_memory_, given.settings),
        plain_(plain_memory_, given.settings),
        random_(seed) {
    if (seed % 3 != 0) return;  // CUDA graphs' pool beside the usual one
    fast_.keep_segments(1);
    plain_.keep_segments(1);
  }

  void step() {
    const uint64_t choice = random_() % 100;
    if (choice < 52 || held_.empty()) {
      allocate();
    } else if (choice < 94) {
      free_one();
    } else if (choice < 97) {
      const Held& held = held_[random_() % held_.size()];
      const auto stream = static_cast<int64_t>(random_() % 3);
      fast_.record_stream(held.block, stream);
      plain_.record_stream(held.address, stream);
    } else if (choice < 99) {
      complete_one();
    } else if (random_() % 20 == 0) {
      fast_.empty_cache();
      plain_.empty_cache();
      waiting_.clear();
    }
  }

  void check() const {
    const auto same = [](const Gauge& fast, const Gauge& plain, const char* what) {
      ASSERT_EQ(fast.current, plain.current) << what;
      ASSERT_EQ(fast.peak, plain.peak) << "peak of " << what;
    };
    same(fast_.figures().requested, plain_.figures().requested, "requested");
    same(fast_.figures().allocated, plain_.figures().allocated, "allocated");
    same(fast_.figures().active, plain_.figures().active, "active");
    same(fast_.figures().reserved, plain_.figures().reserved, "reserved");
    same(fast_.figures().segments, plain_.figures().segments, "segments");
    ASSERT_EQ(fast_.figures().inactive_split, plain_.figures().inactive_split);
    ASSERT_EQ(fast_.figures().retries, plain_.figures().retries);
    ASSERT_EQ(fast_.figures().out_of_memory, plain_.figures().out_of_memory);
    ASSERT_EQ(fast_memory_.used(), plain_memory_.used());
    ASSERT_EQ(fast_memory_.used(), fast_.figures().reserved.current);
  }
  [[nodiscard]] const AllocatorFigures& figures() const { return fast_.figures(); }

 private:
  struct Held {
    BlockId block;
    int64_t address = 0;
  };

  void allocate() {
    const uint64_t bytes = draw_size(random_);
    const auto stream = static_cast<int64_t>(random_() % 2);
    const int64_t retries = fast_.figures().retries;
    const BlockId block = fast_.allocate(bytes, stream);
    const std::optional<int64_t> address = plain_.allocate(bytes, stream);
    if (fast_.figures().retries != retries) waiting_.clear();  // it waited for all streams
    ASSERT_EQ(block.valid(), address.has_value());
    if (!address) return;
    ASSERT_EQ(fast_.address(block), *address);
    held_.push_back({block, *address});
  }

  void free_one() {
    const size_t index = random_() % held_.size();
    const int64_t active = fast_.figures().active.current;
    fast_.free(held_[index].block);
    plain_.free(held_[index].address);
    if (fast_.figures().active.current == active) waiting_.push_back(held_[index]);
    held_[index] = held_.back();
    held_.pop_back();
  }

  void complete_one() {
    if (waiting_.empty()) return;
    const size_t index = random_() % waiting_.size();
    fast_.complete(waiting_[index].block);
    plain_.complete(waiting_[index].address);
    waiting_[index] = waiting_.back();
    waiting_.pop_back();
  }

  DeviceMemory fast_memory_, plain_memory_;
  CachingAllocator fast_;
  ReferenceAllocator plain_;
  std::mt19937_64 random_;
  std::vector<Held> held_, waiting_;
};

TEST(ReferenceAllocator, AgreesWithTheFastOneAtEveryStep) {
  for (const Case& given : cases()) {
    int64_t retries = 0;
    for (uint64_t seed = 0; seed < 12; ++seed) {
      Twins twins(given, seed);
      for (int step = 0; step < 1500; ++step) {
        twins.step();
        twins.check();
        if (::testing::Test::HasFatalFailure()) {
          FAIL() << given.name << ", seed " << seed << ", step " << step;
        }
      }
      retries += twins.figures().retries;
    }
    EXPECT_EQ(retries > 0, given.tight) << given.name;
  }
}

}  // namespace
}  // namespace forerun
