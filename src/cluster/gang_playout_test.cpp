// Orders of gangs played forward, worked out by hand.
#include "cluster/gang_playout.h"

#include <gtest/gtest.h>

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
