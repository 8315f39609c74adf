#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <numeric>
#include <set>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace forerun {
namespace {

// Makes some threads and then none, as a limit on processes does.
ThreadMaker makes_at_most(size_t threads) {
  return [left = std::make_shared<size_t>(threads)](const std::function<void()>& work) {
    if (*left == 0) throw std::system_error(EAGAIN, std::generic_category());
    --*left;
    return std::thread(work);
  };
}

TEST(ParallelFor, RunsEveryTaskOnce) {
  for (const size_t count : {0, 1, 2, 7, 1000}) {
    for (const size_t threads : {0, 1, 2, 8, 64}) {
      std::vector<int> runs(count);
      parallel_for(count, threads, [&](size_t i) { ++runs[i]; });
      EXPECT_EQ(runs, std::vector<int>(count, 1)) << count << " tasks, " << threads << " threads";
    }
  }
}

TEST(ParallelFor, GoesOnWithTheThreadsItGets) {
  for (const size_t made : {0, 1, 3}) {
    std::vector<int> runs(100);
    std::mutex seeing;
    std::set<std::thread::id> seen;
    parallel_for(
        runs.size(), 16,
        [&](size_t i) {
          ++runs[i];
          const std::scoped_lock lock(seeing);
          seen.insert(std::this_thread::get_id());
        },
        makes_at_most(made));
    EXPECT_EQ(runs, std::vector<int>(100, 1)) << made;
    EXPECT_LE(seen.size(), made + 1);
  }
}

TEST(ParallelFor, ThrowsWhatTheFirstTaskThrewWhenAllHaveEnded) {
  for (const size_t threads : {1, 2, 8}) {
    std::atomic<int> running = 0;
    const auto task = [&](size_t i) {
      ++running;
      if (i >= 5) std::this_thread::sleep_for(std::chrono::milliseconds(i == 5 ? 20 : 1));
      --running;
      if (i >= 5) throw std::runtime_error("task " + std::to_string(i));
    };
    try {
      parallel_for(1000, threads, task);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "task 5") << threads << " threads";
    }
    EXPECT_EQ(running, 0);
  }
}

// Memory for one task at a time.
TEST(ParallelFor, RunsAgainWhatRanOutOfMemoryBesideOthers) {
  std::vector<int> done(64);
  std::atomic<int> running = 0;
  parallel_for(done.size(), 8, [&](size_t i) {
    const bool alone = ++running == 1;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const bool still = running-- == 1;
    if (!alone || !still) throw std::bad_alloc();
    ++done[i];
  });
  EXPECT_EQ(done, std::vector<int>(64, 1));
}

TEST(ParallelFor, SaysSoWhereOneTaskAloneRunsOutOfMemory) {
  for (const size_t threads : {1, 4}) {
    EXPECT_THROW(parallel_for(10, threads,
                              [](size_t i) {
                                if (i == 7) throw std::bad_alloc();
                              }),
                 std::bad_alloc);
  }
}

}  // namespace
}  // namespace forerun
