// Gavel, Themis and Sia on small cases whose outcome is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cluster/policies.h"
#include "cluster/simulator.h"

namespace forerun::cluster {
namespace {

struct SmallCase {
  Workload workload;
  Cluster cluster;
};

SmallCase small_case(const std::vector<std::vector<int>>& seconds_by_type, const std::vector<int>& gpus) {
  SmallCase result;
  for (size_t type = 0; type < gpus.size(); ++type) {
    result.cluster.pools.push_back({"type" + std::to_string(type), gpus[type]});
  }
  result.workload.truth = Durations(gpus.size());
  for (const auto& row : seconds_by_type) {
    result.workload.jobs.emplace_back();
    for (const int value : row) result.workload.truth.add(value < 0 ? kNever : time_from_seconds(value));
  }
  return result;
}

Schedule run(const SmallCase& given, const std::string& name) {
  const auto policy = make_policy(name);
  return simulate(given.workload, given.cluster, given.workload.truth, **policy, {.keep_segments = true});
}

class EveryRoundPolicy : public testing::TestWithParam<const char*> {};

TEST_P(EveryRoundPolicy, EndsEveryJobAndNeverUsesMoreGpusThanThereAre) {
  std::mt19937 random(9);
  std::vector<std::vector<int>> rows(40);
  for (auto& row : rows) {
    for (int type = 0; type < 2; ++type) row.push_back(static_cast<int>(random() % 2000 + 50));
  }
  SmallCase given = small_case(rows, {3, 4});
  for (size_t job = 0; job < 40; ++job) {
    given.workload.jobs[job].gpus = static_cast<int32_t>(random() % 3 + 1);
    given.workload.jobs[job].arrival = time_from_seconds(static_cast<double>(job * 100));
  }
  const Schedule schedule = run(given, GetParam());
  for (const Time finish : schedule.finish) EXPECT_NE(finish, kNever);
  for (const Segment& at : schedule.segments) {
    int32_t used = 0;
    for (const Segment& other : schedule.segments) {
      if (other.type == at.type && other.begin <= at.begin && at.begin < other.end) used += other.gpus;
    }
    EXPECT_LE(used, given.cluster.pools[at.type].gpus);
  }
  EXPECT_EQ(run(given, GetParam()).finish, schedule.finish);  // repeatable
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryRoundPolicy,
                         testing::Values("gavel", "gavel-makespan", "gavel-ftf", "themis", "sia"));

TEST(Gavel, EqualJobsGetEqualShares) {
  // Three like jobs on one GPU: each has had about a third of the time at any moment, so they end close together.
  const SmallCase given = small_case({{3600}, {3600}, {3600}}, {1});
  const Schedule schedule = run(given, "gavel:round=60");
  for (const Time finish : schedule.finish) EXPECT_GT(seconds(finish), 3 * 3600 - 200);
}

TEST(Sia, EachJobRunsWhereItGainsMost) {
  const SmallCase given = small_case({{1000, 4000}, {2000, 2500}}, {1, 1});
  const Schedule schedule = run(given, "sia");
  EXPECT_EQ(schedule.segments.front().job, 0U);
  EXPECT_EQ(schedule.finish[0], time_from_seconds(1000));
}

TEST(Gavel, TimeOnBothTypesBringsTheLastEndForward) {
  // Each on its better type ends after 2500 s; the second job is sooner done with some time on the first type.
  const SmallCase given = small_case({{1000, 4000}, {2000, 2500}}, {1, 1});
  const Schedule schedule = run(given, "gavel-makespan:round=20");
  EXPECT_LT(std::max(schedule.finish[0], schedule.finish[1]), time_from_seconds(2450));
}

TEST(Themis, TheWorstOffComesFirst) {
  // A long job has the GPU; a short one that waits is soon the worse off, and gets the next lease.
  SmallCase given = small_case({{36000}, {600}}, {1});
  given.workload.jobs[1].arrival = time_from_seconds(10);
  const Schedule schedule = run(given, "themis:lease=300");
  EXPECT_LT(seconds(schedule.finish[1]), 5000);
}

}  // namespace
}  // namespace forerun::cluster
