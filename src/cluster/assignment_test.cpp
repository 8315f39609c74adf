#include "cluster/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace forerun::cluster {
namespace {

QueueProblem random_problem(std::mt19937& random) {
  const auto between = [&](int low, int high) { return low + static_cast<int>(random() % (high - low + 1)); };
  QueueProblem problem;
  const int kinds = between(1, 4);
  for (int kind = 0; kind < kinds; ++kind) {
    std::vector<int64_t> free_at(between(1, 4));
    for (int64_t& time : free_at) time = between(0, 1) * between(0, 30);
    problem.free_at.push_back(free_at);
  }
  const int jobs = between(0, 25);
  for (int job = 0; job < jobs; ++job) {
    std::vector<int64_t> durations(kinds);
    for (int64_t& duration : durations) duration = between(0, 5) == 0 ? kCannotRun : between(0, 20);
    durations[between(0, kinds - 1)] = between(0, 20);
    problem.durations.push_back(durations);
  }
  return problem;
}

// Runs the queues of a plan, one machine at a time, and gives the sum of completions.
int64_t run_queues(const QueueProblem& problem, const std::vector<QueuePlace>& places) {
  std::map<std::pair<int, int>, std::vector<int>> queues;
  for (size_t job = 0; job < places.size(); ++job) {
    queues[{places[job].kind, places[job].machine}].push_back(static_cast<int>(job));
  }
  int64_t total = 0;
  for (auto& [machine, jobs] : queues) {
    std::sort(jobs.begin(), jobs.end(), [&](int a, int b) { return places[a].from_end > places[b].from_end; });
    int64_t now = problem.free_at[machine.first][machine.second];
    for (size_t i = 0; i < jobs.size(); ++i) {
      EXPECT_EQ(places[jobs[i]].from_end, static_cast<int>(jobs.size() - i));
      EXPECT_EQ(places[jobs[i]].start, now);
      EXPECT_NE(problem.durations[jobs[i]][machine.first], kCannotRun);
      now += problem.durations[jobs[i]][machine.first];
      total += now;
    }
  }
  return total;
}

TEST(Assignment, EqualsThePlainTwinOnRandomQueues) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    const QueueProblem problem = random_problem(random);
    const std::vector<QueuePlace> places = assign_to_queues(problem);
    ASSERT_EQ(totals_of(problem, places).completion, reference_least_completion(problem)) << "round " << round;
    ASSERT_EQ(run_queues(problem, places), totals_of(problem, places).completion) << "round " << round;
  }
}

TEST(Assignment, PlainTwinEqualsTryingEveryPermutation) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::vector<int64_t>> cost(4, std::vector<int64_t>(6));
    for (auto& row : cost) {
      for (int64_t& value : row) value = static_cast<int64_t>(random() % 50);
    }
    std::vector<int> columns(6);
    std::iota(columns.begin(), columns.end(), 0);
    int64_t least = 1000;
    do {
      int64_t sum = 0;
      for (size_t row = 0; row < 4; ++row) sum += cost[row][columns[row]];
      least = std::min(least, sum);
    } while (std::next_permutation(columns.begin(), columns.end()));
    const std::vector<int> found = reference_assign(cost);
    int64_t sum = 0;
    for (size_t row = 0; row < 4; ++row) sum += cost[row][found[row]];
    EXPECT_EQ(sum, least);
  }
}

TEST(Assignment, OneMachineRunsTheShortestFirst) {
  const QueueProblem problem{.free_at = {{10}}, .durations = {{5}, {1}, {3}}};
  const std::vector<QueuePlace> places = assign_to_queues(problem);
  EXPECT_EQ(places[1].start, 10);
  EXPECT_EQ(places[2].start, 11);
  EXPECT_EQ(places[0].start, 14);
  EXPECT_EQ(totals_of(problem, places).completion, 11 + 14 + 19);
}

TEST(Assignment, LeastRunningTimeAmongEqualSums) {
  // Together on the fast machine (2 + 4) or one on each (2 + 4): the first runs for less.
  const QueueProblem problem{.free_at = {{0}, {0}}, .durations = {{2, 4}, {2, 4}}};
  const std::vector<QueuePlace> places = assign_to_queues(problem);
  EXPECT_EQ(totals_of(problem, places).completion, 6);
  EXPECT_EQ(totals_of(problem, places).running, 4);
}

}  // namespace
}  // namespace forerun::cluster
