#include "base/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace forerun {
namespace {

// Squares of 0 ... count-1, some of which take longer than others.
std::vector<uint64_t> squares(size_t count, size_t slots, const ThreadMaker& make = {}) {
  std::vector<uint64_t> held(slots), handed;
  size_t next = 0;
  OrderedWork work({.take =
                        [&](size_t slot) {
                          held[slot] = next;
                          return next++ < count;
                        },
                    .work =
                        [&](size_t slot) {
                          if (held[slot] % 7 == 3) std::this_thread::yield();
                          held[slot] *= held[slot];
                        },
                    .hand_on = [&](size_t slot) { handed.push_back(held[slot]); }});
  work.run(slots, make);
  return handed;
}

TEST(ParallelOrderedWork, HandsOnInTheOrderOfTaking) {
  for (const size_t slots : {1U, 2U, 3U, 8U}) {
    const std::vector<uint64_t> handed = squares(2000, slots);
    ASSERT_EQ(handed.size(), 2000U) << slots;
    for (size_t i = 0; i < handed.size(); ++i) ASSERT_EQ(handed[i], i * i) << slots;
  }
  EXPECT_TRUE(squares(0, 4).empty());
}

TEST(ParallelOrderedWork, GoesOnWithTheThreadsItGets) {
  const ThreadMaker none = [](const std::function<void()>&) -> std::thread {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  EXPECT_EQ(squares(100, 4, none), squares(100, 1));
}

TEST(ParallelOrderedWork, NothingRunsOnceItHasSettled) {
  constexpr size_t kSlots = 4, kCount = 400;
  std::atomic<size_t> at_work = 0;
  size_t next = 0, handed = 0;
  OrderedWork* own = nullptr;
  OrderedWork work({.take =
                        [&](size_t) {
                          if (next % 10 == 9) {
                            EXPECT_TRUE(own->settle());
                            EXPECT_EQ(at_work, 0U);
                            EXPECT_EQ(handed, next);
                          }
                          return next++ < kCount;
                        },
                    .work =
                        [&](size_t) {
                          ++at_work;
                          std::this_thread::yield();
                          --at_work;
                        },
                    .hand_on = [&](size_t) { ++handed; }});
  own = &work;
  work.run(kSlots);
  EXPECT_EQ(handed, kCount);
}

TEST(ParallelOrderedWork, ThrowsWhereAnyStepDoes) {
  for (const char* step : {"take", "work", "hand_on"}) {
    size_t next = 0, handed = 0;
    const auto at = [&](const char* here, size_t number) {
      if (std::string_view(here) == step && number == 50) throw std::runtime_error(step);
    };
    std::vector<size_t> held(3);
    OrderedWork work({.take =
                          [&](size_t slot) {
                            at("take", next);
                            held[slot] = next++;
                            return true;
                          },
                      .work = [&](size_t slot) { at("work", held[slot]); },
                      .hand_on =
                          [&](size_t slot) {
                            at("hand_on", held[slot]);
                            ++handed;
                          }});
    EXPECT_THROW(work.run(3), std::runtime_error) << step;
    EXPECT_LE(handed, 50U) << step;
    EXPECT_LE(next, 54U) << step;  // what had been taken by then, and no more
  }
}

}  // namespace
}  // namespace forerun
