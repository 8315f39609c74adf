#include "base/work_control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <thread>
#include <vector>

#include "base/parallel.h"

namespace forerun {
namespace {

TEST(WorkControl, ADefaultOneAsksForNothing) {
  const WorkControl none;
  Work work(none, "rows", 3);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(work.advance().ok());
  EXPECT_TRUE(work.goes_on());
  EXPECT_TRUE(work.status().ok());
}

TEST(WorkControl, AStopIsAnErrorOfItsOwnKindAndStays) {
  std::stop_source source;
  const WorkControl control{.progress = {}, .stop = source.get_token(), .budget = {}};
  Work work(control, "rows", 10);
  EXPECT_TRUE(work.advance(4).ok());
  source.request_stop();
  EXPECT_FALSE(work.goes_on());
  const Status stopped = work.check();
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::stopped);
  EXPECT_TRUE(stopped.error().is_unfinished());
  EXPECT_EQ(stopped.error().what, "stopped after 4 of 10 rows");
  EXPECT_EQ(stopped.error().within("runs.jsonl").kind, ErrorKind::stopped);
  EXPECT_FALSE(work.advance().ok());
  EXPECT_EQ(work.status().error().what, "stopped after 4 of 10 rows");
}

TEST(WorkControl, ADeadlineThatIsOverIsNamed) {
  const WorkControl control{.progress = {}, .stop = {}, .budget = Budget::of(1e-9)};
  Work work(control);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Status status = work.check();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::time_limit);
  EXPECT_NE(status.error().message().find("time limit of 1e-09 s"), std::string::npos) << status.error().message();
}

TEST(WorkControl, BudgetsOfOddLengthsDoNotOverflow) {
  EXPECT_FALSE(Budget::of(0).deadline);
  EXPECT_FALSE(Budget::of(-1).deadline);
  EXPECT_FALSE(Budget::of(std::nan("")).deadline);
  const WorkControl endless{.progress = {}, .stop = {}, .budget = Budget::of(1e300)};
  Work work(endless);
  EXPECT_TRUE(work.check().ok());
}

TEST(WorkControl, MemoryBeyondTheLimitIsNamed) {
  EXPECT_GT(resident_memory().value, 1 << 20);
  const WorkControl little{.progress = {}, .stop = {}, .budget = Budget::of(0, Bytes(1))};
  Work work(little, "plans");
  const Status status = work.check();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::memory_limit);
  EXPECT_NE(status.error().what.find("after 0 plans"), std::string::npos);
  const WorkControl plenty{.progress = {}, .stop = {}, .budget = Budget::of(0, Bytes(int64_t{1} << 50))};
  Work easy(plenty);
  EXPECT_TRUE(easy.check().ok());
}

TEST(WorkControl, ProgressIsToldAtBothEndsAndSeldomInBetween) {
  std::vector<int64_t> told;
  const WorkControl control{.progress =
                                [&](const Progress& progress) {
                                  EXPECT_EQ(progress.what, "rows");
                                  EXPECT_EQ(progress.total, 100'000);
                                  told.push_back(progress.done);
                                },
                            .stop = {},
                            .budget = {}};
  Work work(control, "rows", 100'000);
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(work.advance().ok());
  ASSERT_GE(told.size(), 2U);
  EXPECT_LT(told.size(), 10'000U);
  EXPECT_EQ(told.front(), 0);
  EXPECT_EQ(told.back(), 100'000);
}

TEST(WorkControl, ThreadsShareOneAndTellOneAtATime) {
  std::atomic<int> telling = 0;
  std::atomic<int64_t> last = 0;
  const WorkControl control{.progress =
                                [&](const Progress& progress) {
                                  EXPECT_EQ(++telling, 1);
                                  last = progress.done;
                                  --telling;
                                },
                            .stop = {},
                            .budget = {}};
  Work work(control, "tasks", 2000);
  std::vector<int> ran(2000);
  EXPECT_TRUE(parallel_for(ran.size(), 4, work, [&](size_t i) { ran[i] = 1; }).ok());
  EXPECT_EQ(std::count(ran.begin(), ran.end(), 1), 2000);
  EXPECT_EQ(last, 2000);
}

TEST(WorkControl, AStopLetsNoFurtherTaskBegin) {
  for (const size_t threads : {1, 4}) {
    std::stop_source source;
    const WorkControl control{.progress = {}, .stop = source.get_token(), .budget = {}};
    Work work(control, "tasks", 1000);
    std::atomic<int> ran = 0;
    const Status status = parallel_for(1000, threads, work, [&](size_t) {
      if (++ran == 10) source.request_stop();
    });
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::stopped);
    EXPECT_LT(ran, 20);
  }
}

}  // namespace
}  // namespace forerun
