#include "cluster/queue_sequence.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun::cluster {
namespace {

std::vector<QueueJob> random_jobs(std::mt19937& random, int most, int deadline_span) {
  std::vector<QueueJob> jobs(random() % static_cast<unsigned>(most + 1));
  for (QueueJob& job : jobs) {
    job.duration = static_cast<int64_t>(random() % 10);
    if (random() % 2 == 0) job.deadline = static_cast<int64_t>(random() % static_cast<unsigned>(deadline_span));
  }
  return jobs;
}

TEST(QueueSequence, EqualsTryingEveryOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 600; ++round) {
    const std::vector<QueueJob> jobs = random_jobs(random, 6, round % 2 == 0 ? 20 : 60);
    const Sequence found = best_sequence(4, jobs, 100'000);
    EXPECT_EQ(found.cost, reference_best_sequence(4, jobs).cost) << "round " << round;
    EXPECT_EQ(found.cost, cost_of_order(4, jobs, found.order)) << "round " << round;
  }
}

TEST(QueueSequence, FewerNodesNeverDoBetterAndKeepEveryJob) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const std::vector<QueueJob> jobs = random_jobs(random, 12, 30);
    const Sequence none = best_sequence(0, jobs, 0);
    const Sequence few = best_sequence(0, jobs, 50);
    const Sequence many = best_sequence(0, jobs, 5000);
    EXPECT_FALSE(none.cost < few.cost);
    EXPECT_FALSE(few.cost < many.cost);
    std::vector<int> seen(jobs.size());
    for (const int job : few.order) ++seen[static_cast<size_t>(job)];
    EXPECT_EQ(seen, std::vector<int>(jobs.size(), 1));
    EXPECT_EQ(few.cost, cost_of_order(0, jobs, few.order));
  }
}

TEST(QueueSequence, LateJobMovesForwardPastItsNeighbours) {
  const std::vector<QueueJob> jobs = {{1}, {2}, {3}, {4, 5}};
  EXPECT_EQ(swap_late_forward(0, jobs, {0, 1, 2, 3}).order, (std::vector<int>{0, 3, 1, 2}));
}

TEST(QueueSequence, ShortestFirstWhereNobodyIsLate) {
  const std::vector<QueueJob> jobs = {{5, 9}, {1}, {3, 9}};
  const Sequence found = best_sequence(0, jobs, 0);
  EXPECT_EQ(found.order, (std::vector<int>{1, 2, 0}));
  EXPECT_EQ(found.cost, (SequenceCost{0, 1 + 4 + 9}));
}

}  // namespace
}  // namespace forerun::cluster
