// Gavel, Themis and Sia on small cases whose outcome is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cluster/policies.h"
#include "cluster/policies/cluster_case_test.h"
#include "cluster/predictions.h"
#include "cluster/simulator.h"

namespace forerun::cluster {
namespace {

Schedule schedule_by(const ClusterCase& given, const std::string& name) {
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
  ClusterCase given = small_case(rows, {3, 4});
  for (size_t job = 0; job < 40; ++job) {
    given.workload.jobs[job].gpus = static_cast<int32_t>(random() % 3 + 1);
    given.workload.jobs[job].arrival = time_from_seconds(static_cast<double>(job * 100));
  }
  const Schedule schedule = schedule_by(given, GetParam());
  for (const Time finish : schedule.finish) EXPECT_NE(finish, kNever);
  for (const Segment& at : schedule.segments) {
    int32_t used = 0;
    for (const Segment& other : schedule.segments) {
      if (other.type == at.type && other.begin <= at.begin && at.begin < other.end) used += other.gpus;
    }
    EXPECT_LE(used, given.cluster.pools[at.type].gpus);
  }
  EXPECT_EQ(schedule_by(given, GetParam()).finish, schedule.finish);  // repeatable
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryRoundPolicy,
                         testing::Values("gavel", "gavel-makespan", "gavel-ftf", "gavel:pack=1", "gavel-ftf:pack=1",
                                         "themis", "themis:filter=0.3", "sia", "sia:exact=0"));

// Jobs of a few kinds on three types, of which some share a GPU well; the second case knows no sizes, so that nothing
// tells jobs or types apart.
ClusterCase shared_case(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<int>> rows(30);
  for (auto& row : rows) {
    for (int type = 0; type < 3; ++type) row.push_back(static_cast<int>(random() % 20 + 1) * 300);
  }
  ClusterCase given = small_case(rows, {3, 4, 2});
  auto packing = std::make_shared<PackingModel>();
  given.workload.kinds = {"a", "b"};
  for (uint32_t type = 0; type < 3; ++type) {
    for (int32_t kind = 0; kind < 2; ++kind) packing->add(0, kind, type, 0.8, 0.7);
  }
  given.workload.packing = packing;
  for (size_t job = 0; job < rows.size(); ++job) {
    given.workload.jobs[job].gpus = static_cast<int32_t>(random() % 3 == 0 ? 2 : 1);
    given.workload.jobs[job].kind = static_cast<int32_t>(random() % 2);
    given.workload.jobs[job].arrival = time_from_seconds(static_cast<double>(job / 3 * 900));
  }
  return given;
}

class SolvingPolicy : public testing::TestWithParam<const char*> {};

TEST_P(SolvingPolicy, SameScheduleInWhateverOrderTheSolverSeesTheProgram) {
  const std::string name = GetParam();
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const ClusterCase given = shared_case(seed);
    for (const PredictorKind predictor : {PredictorKind::perfect, PredictorKind::none}) {
      const Durations predicted = predict_durations(given.workload, {predictor}, 1);
      const auto finish = [&](const std::string& policy) {
        return simulate(given.workload, given.cluster, predicted, **make_policy(policy)).finish;
      };
      const auto plain = finish(name + "shuffle=0");
      for (const char* shuffle : {"shuffle=1", "shuffle=2"}) {
        EXPECT_EQ(finish(name + shuffle), plain)
            << name << shuffle << ", " << static_cast<int>(predictor) << ", seed " << seed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, SolvingPolicy,
                         testing::Values("gavel:", "gavel-makespan:", "gavel-ftf:", "gavel:pack=1,",
                                         "gavel-makespan:pack=1,", "gavel-ftf:pack=1,", "sia:exact=0,"));

TEST(Gavel, EqualJobsGetEqualShares) {
  // Three like jobs on one GPU: each has had about a third of the time at any moment, so they end close together.
  const ClusterCase given = small_case({{3600}, {3600}, {3600}}, {1});
  const Schedule schedule = schedule_by(given, "gavel:round=60");
  for (const Time finish : schedule.finish) EXPECT_GT(seconds(finish), 3 * 3600 - 200);
}

TEST(Sia, EachJobRunsWhereItGainsMost) {
  const ClusterCase given = small_case({{1000, 4000}, {2000, 2500}}, {1, 1});
  const Schedule schedule = schedule_by(given, "sia");
  EXPECT_EQ(schedule.segments.front().job, 0U);
  EXPECT_EQ(schedule.finish[0], time_from_seconds(1000));
}

TEST(Gavel, TimeOnBothTypesBringsTheLastEndForward) {
  // Each on its better type ends after 2500 s; the second job is sooner done with some time on the first type.
  const ClusterCase given = small_case({{1000, 4000}, {2000, 2500}}, {1, 1});
  const Schedule schedule = schedule_by(given, "gavel-makespan:round=20");
  EXPECT_LT(std::max(schedule.finish[0], schedule.finish[1]), time_from_seconds(2450));
}

TEST(Gavel, SharesAreKeptWhileJobsComeAndGo) {
  // A job comes every round and takes half of one, so the program is solved anew every time. The two long jobs get equal
  // shares all the same.
  std::vector<std::vector<int>> rows(62, {30});
  rows[0] = rows[1] = {1200};
  ClusterCase given = small_case(rows, {1});
  for (size_t job = 2; job < rows.size(); ++job) {
    given.workload.jobs[job].arrival = time_from_seconds(static_cast<double>(job) * 60);
  }
  const Schedule schedule = schedule_by(given, "gavel:round=60");
  EXPECT_LT(std::abs(seconds(schedule.finish[0] - schedule.finish[1])), 600);
}

Workload three_sharers(double speed) {
  Workload workload;
  workload.kinds = {"lm"};
  workload.jobs.resize(3);
  for (Job& job : workload.jobs) {
    job.kind = 0;
    workload.truth.add(time_from_seconds(1000));
  }
  auto packing = std::make_shared<PackingModel>();
  packing->add(0, 0, 0, speed, speed);
  workload.packing = packing;
  return workload;
}

TEST(Gavel, PacksTwoJobsOnAGpuWhereThatWasMeasured) {
  // Three jobs of 1000 s on one GPU, two at a time at 0.9 of their speed: 3000 s of work at 1.8, and the last alone.
  const ClusterCase given{three_sharers(0.9), *parse_cluster("1")};
  const auto last = [&](const std::string& policy) {
    const Schedule schedule = schedule_by(given, policy);
    return seconds(*std::max_element(schedule.finish.begin(), schedule.finish.end()));
  };
  EXPECT_NEAR(last("gavel:round=20"), 3000, 1e-6);
  EXPECT_LT(last("gavel:round=20,pack=1"), 3000 / 1.8 + 60);
  EXPECT_LT(last("gavel-makespan:round=20,pack=1"), 3000 / 1.8 + 60);
  EXPECT_LT(last("gavel-ftf:round=20,pack=1"), 3000 / 1.8 + 60);
  const ClusterCase poor{three_sharers(0.4), *parse_cluster("1")};  // together slower than in turns
  EXPECT_EQ(schedule_by(poor, "gavel:round=20,pack=1").finish, schedule_by(poor, "gavel:round=20").finish);
}

TEST(Gavel, FinishTimesAreFairToThoseThatWaited) {
  // A job has waited for 4000 s when the second comes: it gets the larger share, and ends first.
  ClusterCase given = small_case({{3000}, {8000}, {3000}}, {1});
  given.workload.jobs[2].arrival = time_from_seconds(4000);
  const Schedule schedule = schedule_by(given, "gavel-ftf:round=60");
  EXPECT_LT(schedule.finish[0], schedule.finish[2]);
}

TEST(Themis, AWinnerPaysWithTheEndOfItsLease) {
  // Two like jobs and one GPU: with 1000 s left each gains (1000 + 100) / 1000 from a lease of 100 s, so the winner keeps
  // it for 1 / 1.1 of the time and the other has the rest.
  const ClusterCase given = small_case({{1000}, {1000}}, {1});
  const Schedule schedule = schedule_by(given, "themis:lease=100,filter=1");
  ASSERT_GE(schedule.segments.size(), 2U);
  EXPECT_EQ(schedule.segments[0].job, 0U);
  EXPECT_NEAR(seconds(schedule.segments[0].end), 100 / 1.1, 1e-3);
  EXPECT_EQ(schedule.segments[1].job, 1U);
}

TEST(Themis, AnUncontestedJobKeepsItsGpus) {
  const ClusterCase given = small_case({{1000}, {1000}}, {2});
  const Schedule schedule = schedule_by(given, "themis:lease=100");
  EXPECT_EQ(schedule.preemptions, 0);
  EXPECT_EQ(schedule.finish[1], time_from_seconds(1000));
}

TEST(Sia, ChoosesHowManyGpusEachJobGets) {
  // Both ask for 2 GPUs and may have 1 to 4 of the 4 there are. The second does not scale: sqrt(2) + sqrt(1) with 2 and 1
  // GPUs (1 and 2 the other way round: 1 + 1), while all 4 for the first would leave nothing for the second.
  ClusterCase given = small_case({{1000}, {1000}}, {4});
  Workload& workload = given.workload;
  workload.kinds = {"scales", "does not"};
  auto speeds = std::make_shared<SpeedModel>();
  speeds->gpus_per_node = 4;
  speeds->tables.resize(2);
  speeds->batch = {8, 8};
  for (size_t kind = 0; kind < 2; ++kind) {
    speeds->tables[kind].resize(1);
    for (const int32_t gpus : {1, 2, 4}) {
      const double step = kind == 0 ? 8.0 / gpus : 8.0;
      for (const double batch : {1.0, 8.0}) speeds->tables[kind][0].add(gpus, 1, batch, step, 0);
    }
    speeds->tables[kind][0].finish();
    Job& job = workload.jobs[kind];
    job.kind = static_cast<int32_t>(kind);
    job.gpus = 2;
    job.least_gpus = 1;
    job.most_gpus = 4;
  }
  workload.speeds = speeds;
  const Schedule schedule = schedule_by(given, "sia:round=10000");
  const auto first = [&](JobIndex job) {
    return std::find_if(schedule.segments.begin(), schedule.segments.end(),
                        [&](const Segment& segment) { return segment.job == job; })
        ->gpus;
  };
  EXPECT_EQ(first(0), 2);
  EXPECT_EQ(first(1), 1);
}

TEST(Themis, TheWorstOffComesFirst) {
  // A long job has the GPU; a short one that waits is soon the worse off, and gets the next lease.
  ClusterCase given = small_case({{36000}, {600}}, {1});
  given.workload.jobs[1].arrival = time_from_seconds(10);
  const Schedule schedule = schedule_by(given, "themis:lease=300");
  EXPECT_LT(seconds(schedule.finish[1]), 5000);
}

}  // namespace
}  // namespace forerun::cluster
