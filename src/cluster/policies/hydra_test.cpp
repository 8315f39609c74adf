// Hydra on the shared hydra cases against EDF and AlloX, and on small cases made up here.
#include <gtest/gtest.h>

#include <random>

#include "cluster/deadline_plan.h"
#include "cluster/policies.h"
#include "cluster/policies/cluster_case_test.h"

namespace forerun::cluster {
namespace {

Metrics run(const ClusterCase& given, const std::string& policy_name) {
  const auto policy = make_policy(policy_name);
  const Schedule schedule = simulate(given.workload, given.cluster, given.workload.truth, **policy);
  return metrics_of(schedule, given.workload, given.cluster);
}

struct DeadlineCase {
  const char* file;
  size_t jobs;
};

class HydraOnCase : public testing::TestWithParam<DeadlineCase> {};

TEST_P(HydraOnCase, NoMoreTardyThanEdfAndNoFasterThanAllox) {
  const auto given = hydra_case(GetParam().file, GetParam().jobs);
  if (!given) GTEST_SKIP() << kNoHydraCase;
  const Metrics hydra = run(*given, "hydra");
  EXPECT_EQ(hydra.unfinished, 0);
  EXPECT_EQ(hydra.late, 0);
  EXPECT_LE(hydra.total_tardiness, run(*given, "edf").total_tardiness);
  const double allox = run(*given, "allox").mean_jct;
  EXPECT_GE(hydra.mean_jct, allox);
  EXPECT_LE(hydra.mean_jct, allox * 1.07);  // what meeting every deadline costs
}

INSTANTIATE_TEST_SUITE_P(Cases, HydraOnCase,
                         testing::Values(DeadlineCase{"heavy_30_ddl.csv", 100}, DeadlineCase{"heavy_30_ddl.csv", 200},
                                         DeadlineCase{"heavy_30_ddl.csv", 400}, DeadlineCase{"light_20_ddl.csv", 100},
                                         DeadlineCase{"light_20_ddl.csv", 200}, DeadlineCase{"light_20_ddl.csv", 400}));

// Published for Hydra: 11703.23 with none late.
TEST(Hydra, BetterThanPublished) {
  const auto given = hydra_case("heavy_30_ddl.csv", 100);
  if (!given) GTEST_SKIP() << kNoHydraCase;
  EXPECT_LE(run(*given, "hydra").mean_jct, 11703.23);
}

ClusterCase one_gpu(const std::vector<Job>& jobs, const std::vector<int>& durations) {
  ClusterCase result;
  result.cluster.pools = {{"gpu", 1}};
  result.workload.jobs = jobs;
  result.workload.truth = Durations(1);
  for (const int duration : durations) result.workload.truth.add(time_from_seconds(duration));
  return result;
}

TEST(Hydra, AnUrgentArrivalOvertakesThePlan) {
  const Time late = time_from_seconds(12);
  const ClusterCase given =
      one_gpu({{.arrival = Time(0)}, {.arrival = Time(0)}, {.arrival = Time(1), .deadline = late}}, {2, 3, 9});
  const auto policy = make_policy("hydra");
  const Schedule schedule = simulate(given.workload, given.cluster, given.workload.truth, **policy);
  EXPECT_EQ(schedule.start[2], time_from_seconds(2));
  EXPECT_EQ(schedule.start[1], time_from_seconds(11));
}

TEST(Hydra, AGangMeetsItsDeadline) {
  ClusterCase given = one_gpu({{}, {}, {.deadline = time_from_seconds(11), .gpus = 2}}, {4, 4, 6});
  given.cluster.pools[0].gpus = 2;
  EXPECT_EQ(run(given, "hydra").late, 0);
  given.workload.jobs[2].deadline = time_from_seconds(7);
  EXPECT_EQ(run(given, "hydra").late, 0);
}

// Gangs that arrive over time: few of these cases are worse than EDF, as nobody knows what comes, and none by much.
TEST(Hydra, GangsThatArriveOverTimeAreNoLaterThanUnderEdf) {
  std::mt19937_64 random(21);
  double hydra = 0, edf = 0, skipping = 0;
  for (int round = 0; round < 12; ++round) {
    ClusterCase given;
    given.cluster.pools = {{"a", 8}, {"b", 8}};
    given.workload.truth = Durations(2);
    int64_t arrival = 0;
    for (int i = 0; i < 60; ++i) {
      Job job;
      job.gpus = 1 << (random() % 4);
      arrival += static_cast<int64_t>(random() % 400);
      job.arrival = Time(arrival * kSecond.value);
      const auto duration = static_cast<int64_t>(random() % 3000 + 100);
      if (i % 2 == 0)
        job.deadline = Time((arrival + duration * (2 + static_cast<int64_t>(random() % 5))) * kSecond.value);
      given.workload.jobs.push_back(job);
      given.workload.truth.add(Time(duration * kSecond.value));
      given.workload.truth.add(Time(2 * duration * kSecond.value));
    }
    hydra += run(given, "hydra").total_tardiness;
    edf += run(given, "edf").total_tardiness;
    skipping += run(given, "edf-skip").total_tardiness;
  }
  EXPECT_LE(hydra, edf);
  EXPECT_LE(hydra, skipping);
}

TEST(DeadlinePlan, StartsAreNeverWorseThanEdfInTheEnd) {
  const auto given = hydra_case("light_20_ddl.csv", 150);
  if (!given) GTEST_SKIP() << kNoHydraCase;
  // Deadlines a tenth of what they were: not all can be met.
  ClusterCase tight = *given;
  for (Job& job : tight.workload.jobs) {
    if (job.deadline != kNever) job.deadline = Time(job.deadline.value / 10);
  }
  const Metrics hydra = run(tight, "hydra");
  EXPECT_GT(hydra.late, 0);
  EXPECT_LE(hydra.total_tardiness, run(tight, "edf").total_tardiness);
}

}  // namespace
}  // namespace forerun::cluster
