// AlloX on the shared hydra cases and on small ones made up here.
#include <gtest/gtest.h>

#include <random>

#include "cluster/policies.h"
#include "cluster/policies/cluster_case_test.h"

namespace forerun::cluster {
namespace {

Metrics run(const ClusterCase& given, const std::string& policy_name, const Durations& predicted) {
  const auto policy = make_policy(policy_name);
  const Schedule schedule = simulate(given.workload, given.cluster, predicted, **policy);
  return metrics_of(schedule, given.workload, given.cluster);
}

struct Known {
  const char* file;
  size_t jobs;
  double jct;
  double wait;
};

class AlloxKnown : public testing::TestWithParam<Known> {};

// Heavy: published. Light: an assignment by scipy's linear_sum_assignment over all places.
TEST_P(AlloxKnown, EveryDigit) {
  const auto given = hydra_case(GetParam().file, GetParam().jobs);
  if (!given) GTEST_SKIP() << kNoHydraCase;
  const Metrics found = run(*given, "allox", given->workload.truth);
  EXPECT_DOUBLE_EQ(found.mean_jct, GetParam().jct);
  EXPECT_DOUBLE_EQ(found.mean_wait, GetParam().wait);
}

INSTANTIATE_TEST_SUITE_P(Hydra, AlloxKnown,
                         testing::Values(Known{"heavy_30_ddl.csv", 100, 11438.58, 1806.83},
                                         Known{"heavy_30_ddl.csv", 200, 15799.18, 5783.395},
                                         Known{"heavy_30_ddl.csv", 400, 27791.6375, 15781.2675},
                                         Known{"light_20_ddl.csv", 100, 19310.58, 2290.43},
                                         Known{"light_20_ddl.csv", 200, 20231.98, 6604.315},
                                         Known{"light_20_ddl.csv", 400, 31094.4425, 16096.635}));

TEST(Allox, RunsAJobWhereItCanRun) {
  const ClusterCase given = small_case({{-1, 9}, {-1, 9}, {3, -1}}, {1, 1});
  EXPECT_DOUBLE_EQ(run(given, "allox", given.workload.truth).mean_jct, (9 + 18 + 3) / 3.0);
}

TEST(Allox, ArrivalsChangeThePlanOfJobsThatHaveNotStarted) {
  ClusterCase given = small_case({{10}, {8}, {1}}, {1});
  given.workload.jobs[1].arrival = time_from_seconds(1);
  given.workload.jobs[2].arrival = time_from_seconds(2);
  const auto policy = make_policy("allox");
  const Schedule schedule = simulate(given.workload, given.cluster, given.workload.truth, **policy);
  EXPECT_EQ(schedule.start, (std::vector<Time>{Time(0), time_from_seconds(11), time_from_seconds(10)}));
}

TEST(Allox, WrongPredictionsLoseAndEveryJobStillEnds) {
  std::mt19937 random(3);
  std::vector<std::vector<int>> rows(60);
  for (auto& row : rows) row = {static_cast<int>(random() % 100 + 1), static_cast<int>(random() % 100 + 1)};
  const ClusterCase given = small_case(rows, {2, 3});
  Durations alike(2);
  for (int i = 0; i < 120; ++i) alike.add(time_from_seconds(50));
  const Metrics perfect = run(given, "allox", given.workload.truth);
  const Metrics blind = run(given, "allox", alike);
  EXPECT_EQ(blind.unfinished, 0);
  EXPECT_GT(blind.mean_jct, perfect.mean_jct);
}

TEST(Allox, GangsGetAllOfTheirGpus) {
  ClusterCase given = small_case({{4}, {4}, {4}, {4}}, {4});
  given.workload.jobs[1].gpus = 4;
  given.workload.jobs[3].gpus = 3;
  const Metrics found = run(given, "allox", given.workload.truth);
  EXPECT_EQ(found.unfinished, 0);
  EXPECT_DOUBLE_EQ(found.makespan, 12);  // two single ones, then three GPUs, then four
}

TEST(Allox, AlphaLetsTheLeastServedUserGoFirst) {
  // User 0 has short jobs, user 1 a long one: without fairness the long one comes last.
  ClusterCase given = small_case({{1}, {2}, {2}, {2}, {9}}, {1});
  for (size_t job = 0; job < 5; ++job) given.workload.jobs[job].user = job == 4 ? 1 : 0;
  const auto order_of_long = [&](const std::string& name) {
    const auto policy = make_policy(name);
    return simulate(given.workload, given.cluster, given.workload.truth, **policy).start[4];
  };
  EXPECT_EQ(order_of_long("allox"), time_from_seconds(7));
  EXPECT_EQ(order_of_long("allox:alpha=0.5"), time_from_seconds(1));
}

}  // namespace
}  // namespace forerun::cluster
