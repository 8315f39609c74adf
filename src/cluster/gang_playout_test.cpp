// Orders of gangs played forward, worked out by hand.
#include "cluster/gang_playout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace forerun::cluster {
namespace {

GangProblem three_gangs() {
  // Two GPUs, one of which is busy until 5. A gang of two, then two single ones.
  GangProblem problem;
  problem.jobs = {{2, {10}, kNoDeadline}, {1, {4}, kNoDeadline}, {1, {8}, 9}};
  problem.free = {1};
  problem.busy = {{5, 0, 1}};
  return problem;
}

TEST(GangPlayout, HoldsUpOrSkips) {
  const GangPlayout held = play_out(three_gangs(), {{0, 1, 2}, {}, false});
  EXPECT_EQ(held.places[0].start, 5);
  EXPECT_EQ(held.places[1].start, 15);
  EXPECT_EQ(held.cost.tardiness, 15 + 8 - 9);
  EXPECT_EQ(held.cost.completion, 15 + 19 + 23);
  const GangPlayout skipped = play_out(three_gangs(), {{0, 1, 2}, {}, true});
  EXPECT_EQ(skipped.places[1].start, 0);
  EXPECT_EQ(skipped.places[2].start, 4);
  EXPECT_EQ(skipped.places[0].start, 12);
}

TEST(GangPlayout, IsThatOfItsPlainTwin) {
  std::mt19937_64 random(1);
  const auto below = [&](uint64_t end) { return static_cast<int32_t>(random() % end); };
  for (int round = 0; round < 400; ++round) {
    GangProblem problem;
    const auto types = static_cast<size_t>(1 + below(3));
    for (size_t type = 0; type < types; ++type) {
      problem.free.push_back(below(9));
      for (int32_t i = below(6); i > 0; --i)
        problem.busy.push_back({1 + below(20), static_cast<int32_t>(type), 1 + below(4)});
    }
    GangOrder order;
    order.skip = below(2) == 0;
    for (int32_t i = below(40); i >= 0; --i) {
      GangJob job{1 + below(5), {}, below(2) == 0 ? kNoDeadline : below(60)};
      for (size_t type = 0; type < types; ++type) job.durations.push_back(below(4) == 0 ? kCannotRun : 1 + below(15));
      order.jobs.push_back(static_cast<int>(problem.jobs.size()));
      if (round % 2 == 0) order.types.push_back(below(types + 1) - 1);
      problem.jobs.push_back(job);
    }
    std::shuffle(order.jobs.begin(), order.jobs.end(), random);
    const GangPlayout fast = play_out(problem, order);
    const GangPlayout plain = reference_play_out(problem, order);
    ASSERT_EQ(fast.cost, plain.cost) << round;
    for (size_t job = 0; job < problem.jobs.size(); ++job) {
      ASSERT_EQ(fast.places[job].kind, plain.places[job].kind) << round;
      ASSERT_EQ(fast.places[job].start, plain.places[job].start) << round;
    }
  }
}

TEST(GangPlayout, LateJobsMoveForward) {
  const GangPlayout best = best_playout(three_gangs(), {{{0, 1, 2}, {}, false}, {{0, 1, 2}, {}, true}}, 100);
  EXPECT_EQ(best.cost.tardiness, 0);  // the third first, then the second beside it
  EXPECT_EQ(best.places[2].start, 0);
}

TEST(GangPlayout, TakesTheFastestTypeThatIsFreeOrTheOneSet) {
  GangProblem problem;
  problem.jobs = {{1, {10, 4}, kNoDeadline}, {1, {10, 4}, kNoDeadline}, {1, {kCannotRun, 4}, kNoDeadline}};
  problem.free = {1, 1};
  const GangPlayout free = play_out(problem, {{0, 1, 2}, {}, true});
  EXPECT_EQ(free.places[0].kind, 1);
  EXPECT_EQ(free.places[1].kind, 0);
  EXPECT_EQ(free.places[2].start, 4);
  const GangPlayout set = play_out(problem, {{0, 1, 2}, {0, 1, 1}, true});
  EXPECT_EQ(set.places[0].kind, 0);
  EXPECT_EQ(set.places[1].kind, 1);
}

}  // namespace
}  // namespace forerun::cluster
