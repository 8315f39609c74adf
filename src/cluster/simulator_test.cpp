// The simulator against its plain twin, and what must hold for any schedule.
#include "cluster/simulator.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

#include "cluster/policies.h"
#include "cluster/predictions.h"
#include "cluster/reference_simulator.h"

namespace forerun::cluster {
namespace {

struct Case {
  Workload workload;
  Cluster cluster;
  Durations predicted;
};

// Few jobs, coarse times and small clusters, so that ties and blocked gangs are common.
Case random_case(uint64_t seed, size_t types, bool wrong_predictions, bool priorities = false) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t end) { return static_cast<int64_t>(random() % end); };
  Case made;
  for (size_t type = 0; type < types; ++type) {
    made.cluster.pools.push_back({.type = "t" + std::to_string(type), .gpus = static_cast<int32_t>(8 + below(9))});
  }
  made.workload.truth = Durations(types);
  const int64_t jobs = 20 + below(100);
  Time now;
  for (int64_t i = 0; i < jobs; ++i) {
    Job job;
    job.arrival = now;
    job.gpus = static_cast<int32_t>(int64_t{1} << below(4));
    if (below(3) == 0) job.deadline = now + Time(below(20000) * kSecond.value);
    if (priorities) job.priority = static_cast<int32_t>(below(3) - 1);
    made.workload.jobs.push_back(job);
    for (size_t type = 0; type < types; ++type) {
      const bool unable = types > 1 && type > 0 && below(5) == 0;
      made.workload.truth.add(unable ? kNever : Time((1 + below(5000)) * kSecond.value));
    }
    now += Time(below(4) * 250 * kSecond.value);
  }
  for (size_t type = 0; type < types; ++type) made.workload.gpu_types.push_back("t" + std::to_string(type));
  made.predicted =
      wrong_predictions ? predict_durations(made.workload, {PredictorKind::error, 0.4}, seed) : made.workload.truth;
  return made;
}

void expect_same(const Schedule& fast, const Schedule& plain, const std::string& what) {
  ASSERT_EQ(fast.finish.size(), plain.finish.size());
  for (size_t job = 0; job < fast.finish.size(); ++job) {
    ASSERT_EQ(fast.start[job].value, plain.start[job].value) << what << ", start of job " << job;
    ASSERT_EQ(fast.finish[job].value, plain.finish[job].value) << what << ", finish of job " << job;
    ASSERT_EQ(fast.held[job].value, plain.held[job].value) << what << ", time held by job " << job;
  }
  EXPECT_EQ(fast.preemptions, plain.preemptions) << what;
}

Schedule run(const Case& given, const std::string& name, const SimulationOptions& options = {}) {
  auto policy = make_policy(name);
  EXPECT_TRUE(policy.ok()) << name;
  return simulate(given.workload, given.cluster, given.predicted, **policy, options);
}

class Twin : public testing::TestWithParam<const char*> {};

TEST_P(Twin, SameScheduleOnOneType) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Case given =
        random_case(seed, 1, seed % 2 == 0, seed % 4 >= 2 && parse_policy(GetParam())->entry->by_priority);
    const Time restart(seed % 3 == 0 ? 30 * kSecond.value : 0);
    const Schedule plain = reference_simulate(given.workload, given.cluster, given.predicted, GetParam(), restart);
    expect_same(run(given, GetParam(), {.restart_cost = restart}), plain,
                std::string(GetParam()) + " with seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Twin,
                         testing::Values("fifo", "fifo-skip", "sjf", "sjf-skip", "srsf", "srsf-skip", "edf", "edf-skip",
                                         "easy", "conservative", "srtf", "srtf-skip", "srsf-preempt", "2d-las"));

// Users, groups, jobs that run after others, arrays of which some run at a time, and quotas that often bind.
std::vector<Quota> constrain(Case& given, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t end) { return static_cast<int32_t>(random() % end); };
  Workload& workload = given.workload;
  workload.users = {"ann", "ben", "cem"};
  workload.virtual_clusters = {"vision", "speech"};
  workload.arrays = {{0}, {1}, {3}};
  for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
    workload.jobs[job].user = below(4) - 1;
    workload.jobs[job].virtual_cluster = below(3) - 1;
    workload.array_of.push_back(below(6) == 0 ? below(3) : -1);
    workload.after.emplace_back();
    for (int32_t i = 0; job > 0 && i < below(3); ++i) {
      const auto before = static_cast<JobIndex>(below(job));
      if (workload.after[job].empty() || workload.after[job].back() < before) workload.after[job].push_back(before);
    }
  }
  std::vector<Quota> quotas = {{Quota::Of::user, "", 8 + below(4)}};
  if (seed % 2 == 0) quotas.push_back({Quota::Of::user, "ben", 8 + below(12)});
  if (seed % 3 == 0) quotas.push_back({Quota::Of::group, "", 10 + below(8)});
  return quotas;
}

TEST_P(Twin, SameScheduleWithQuotasDependenciesAndArrays) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Case given = random_case(seed, 1, seed % 2 == 0);
    const std::vector<Quota> quotas = constrain(given, seed);
    const Schedule plain =
        reference_simulate(given.workload, given.cluster, given.predicted, GetParam(), Time(0), quotas);
    expect_same(run(given, GetParam(), {.quotas = quotas}), plain,
                std::string(GetParam()) + " with seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

class TypedTwin : public testing::TestWithParam<const char*> {};

TEST_P(TypedTwin, SameScheduleOnSeveralTypes) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Case given = random_case(seed, 3, seed % 2 == 0, seed % 4 >= 2);
    expect_same(run(given, GetParam()), reference_simulate(given.workload, given.cluster, given.predicted, GetParam()),
                std::string(GetParam()) + " with seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, TypedTwin,
                         testing::Values("fifo", "fifo-skip", "sjf", "sjf-skip", "srsf-skip", "edf-skip", "easy",
                                         "conservative"));

// No pool is ever given out twice, and every job holds GPUs for as long as it takes.
void expect_sound(const Case& given, const Schedule& schedule, const std::string& what) {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> changes(given.cluster.pools.size());
  for (const Segment& segment : schedule.segments) {
    EXPECT_LE(given.workload.jobs[segment.job].arrival, segment.begin) << what;
    changes[segment.type].emplace_back(segment.begin.value, segment.gpus);
    changes[segment.type].emplace_back(segment.end.value, -segment.gpus);
  }
  for (size_t type = 0; type < changes.size(); ++type) {
    std::sort(changes[type].begin(), changes[type].end());
    int64_t used = 0;
    for (const auto& [time, gpus] : changes[type]) {
      used += gpus;
      EXPECT_LE(used, given.cluster.pools[type].gpus) << what;
    }
  }
  for (JobIndex job = 0; job < given.workload.jobs.size(); ++job) {
    ASSERT_NE(schedule.finish[job], kNever) << what << ", job " << job << " never ended";
    EXPECT_GE(schedule.held[job], given.workload.truth.fastest(job)) << what;
  }
}

TEST(Simulator, EveryPolicyGivesASoundSchedule) {
  for (const PolicyEntry& entry : policies()) {
    const std::string name = entry.name;
    const bool solves_programs = name.starts_with("gavel") || name == "themis" || name == "sia";
    for (uint64_t seed = 1; seed <= (solves_programs ? 2 : 10); ++seed) {
      const Case given = random_case(seed, 1 + seed % 3, seed % 2 == 0);
      expect_sound(given, run(given, entry.name, {.keep_segments = true}), entry.name);
      if (HasFatalFailure()) return;
    }
  }
}

// The most that is ever held at once by jobs that `counts` of.
int64_t most_held(const Case& given, const Schedule& schedule, const std::function<int64_t(JobIndex)>& counts) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const Segment& segment : schedule.segments) {
    changes.emplace_back(segment.begin.value, counts(segment.job));
    changes.emplace_back(segment.end.value, -counts(segment.job));
  }
  EXPECT_EQ(schedule.finish.size(), given.workload.jobs.size());
  std::sort(changes.begin(), changes.end());
  int64_t held = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, held += change);
  return most;
}

TEST(Simulator, NoPolicyBreaksQuotasDependenciesOrArrays) {
  for (const PolicyEntry& entry : policies()) {
    Case given = random_case(5, 2, true);
    const std::vector<Quota> quotas = constrain(given, 6);
    const Schedule schedule = run(given, entry.name, {.quotas = quotas, .keep_segments = true});
    expect_sound(given, schedule, entry.name);
    if (HasFatalFailure()) return;
    const Workload& workload = given.workload;
    for (JobIndex job = 0; job < workload.jobs.size(); ++job) {
      for (const JobIndex before : workload.after[job])
        EXPECT_GE(schedule.start[job], schedule.finish[before]) << entry.name;
    }
    for (int32_t user = 0; user < 3; ++user) {
      const auto of_user = [&](JobIndex job) {
        return workload.jobs[job].user == user ? int64_t{workload.jobs[job].gpus} : 0;
      };
      EXPECT_LE(most_held(given, schedule, of_user), quotas[user == 1 ? 1 : 0].gpus) << entry.name;
    }
    for (int32_t array = 1; array < 3; ++array) {
      const auto of_array = [&](JobIndex job) { return int64_t{workload.array_of[job] == array}; };
      EXPECT_LE(most_held(given, schedule, of_array), workload.arrays[static_cast<size_t>(array)].most_at_once)
          << entry.name;
    }
  }
}

TEST(Quotas, AreReadAndHeldAgainstTheJobs) {
  const auto quotas = parse_quotas({"user=8", "user:a=b=16", "group:x:y=0"});
  ASSERT_TRUE(quotas.ok()) << quotas.error().message();
  EXPECT_EQ((*quotas)[1].name, "a=b");
  EXPECT_EQ((*quotas)[2].name, "x:y");
  EXPECT_EQ((*quotas)[2].gpus, 0);
  for (const char* text : {"user", "user=", "user=-1", "user=1.5", "users=3", "user:=3", "=3", "user=nan", ""}) {
    EXPECT_FALSE(parse_quotas({text}).ok()) << text;
  }
  EXPECT_FALSE(parse_quotas({"user=8", "user=9"}).ok());
  Case given = random_case(1, 1, false);
  EXPECT_FALSE(check_quotas({{Quota::Of::user, "", 8}}, given.workload).ok());  // whose?
  constrain(given, 1);
  EXPECT_TRUE(check_quotas({{Quota::Of::user, "", 8}}, given.workload).ok());
  EXPECT_NE(check_quotas({{Quota::Of::user, "anne", 8}}, given.workload).error().message().find("did you mean ann"),
            std::string::npos);
  EXPECT_NE(check_quotas({{Quota::Of::user, "", 4}}, given.workload).error().message().find("takes up to 8 GPUs"),
            std::string::npos);
}

TEST(Simulator, EveryPolicySurvivesFailures) {
  for (const PolicyEntry& entry : policies()) {
    const Case given = random_case(7, 2, true);
    SimulationOptions options;
    options.keep_segments = true;
    options.restart_cost = Time(60 * kSecond.value);
    options.failures.mean_hours_between = 20;
    options.failures.checkpoint_every = Time(600 * kSecond.value);
    const Schedule schedule = run(given, entry.name, options);
    EXPECT_GT(schedule.failures, 0);
    expect_sound(given, schedule, entry.name);
    if (HasFatalFailure()) return;
  }
}

TEST(Simulator, SameBytesTwiceAndInParallel) {
  const Case given = random_case(11, 2, true);
  SimulationOptions options;
  options.failures.mean_hours_between = 20;
  const Schedule once = run(given, "fifo-skip", options);
  Schedule again;
  Schedule other;
  std::thread first([&] { again = run(given, "fifo-skip", options); });
  std::thread second([&] { other = run(given, "srtf", options); });
  first.join();
  second.join();
  expect_same(once, again, "the second time");
}

TEST(Simulator, LosesWorkSinceTheLastCheckpoint) {
  Case given;
  given.cluster = *parse_cluster("1");
  given.workload.jobs.push_back({});
  given.workload.truth.add(Time(100 * 3600 * kSecond.value));
  given.predicted = given.workload.truth;
  SimulationOptions options;
  options.failures.mean_hours_between = 30;
  options.failures.repair = Time(kSecond.value);
  const Schedule kept = run(given, "fifo", options);
  options.failures.checkpoint_every = Time(10 * 3600 * kSecond.value);
  const Schedule lost = run(given, "fifo", options);
  EXPECT_GT(kept.failures, 0);
  EXPECT_EQ(kept.held[0], given.workload.truth.of(0, 0));  // nothing is done twice
  EXPECT_GT(lost.held[0], kept.held[0]);
}

TEST(Simulator, StopsWhereTimeEnds) {
  Case given;
  given.cluster = *parse_cluster("1");
  for (int i = 0; i < 5; ++i) {
    given.workload.jobs.emplace_back();
    given.workload.truth.add(time_from_seconds(4e9));
  }
  given.predicted = given.workload.truth;
  EXPECT_EQ(run(given, "fifo").cut, Schedule::Cut::end_of_time);  // 20e9 s
  given.cluster = *parse_cluster("5");
  EXPECT_EQ(run(given, "fifo").cut, Schedule::Cut::none);
}

TEST(Simulator, StopsWhereFailuresLeaveNoProgress) {
  const Case given = random_case(3, 1, false);
  SimulationOptions options;
  for (const double hours : {1e-9, 1e-6}) {
    for (const double repair : {0.0, 1e-3, 3600.0}) {
      options.failures.mean_hours_between = hours;
      options.failures.repair = time_from_seconds(repair);
      EXPECT_NE(run(given, "fifo", options).cut, Schedule::Cut::none) << hours << " h, repair " << repair << " s";
    }
  }
}

TEST(Simulator, RestartCostIsPaidOncePerStop) {
  Case given;
  given.cluster = *parse_cluster("1");
  given.workload.jobs = {Job{}, Job{}};
  given.workload.jobs[1].arrival = Time(100);
  given.workload.truth.add(Time(1000));
  given.workload.truth.add(Time(10));
  given.predicted = given.workload.truth;
  const Schedule schedule = run(given, "srtf", {.restart_cost = Time(7)});
  EXPECT_EQ(schedule.finish[1], Time(110));
  EXPECT_EQ(schedule.finish[0], Time(1017));
  EXPECT_EQ(schedule.preemptions, 1);
}

// GPUs, seconds and predicted seconds of jobs that arrive a second after each other, on 8 GPUs.
struct Told {
  int32_t gpus;
  int64_t duration, predicted;
  int32_t priority = 0;
};
Case told_case(const std::vector<Told>& jobs) {
  Case given;
  given.cluster = *parse_cluster("8");
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job job;
    job.arrival = Time(static_cast<int64_t>(i) * kSecond.value);
    job.gpus = jobs[i].gpus;
    job.priority = jobs[i].priority;
    given.workload.jobs.push_back(job);
    given.workload.truth.add(Time(jobs[i].duration * kSecond.value));
    given.predicted.add(Time(jobs[i].predicted * kSecond.value));
  }
  return given;
}

class Backfill : public testing::TestWithParam<const char*> {};

TEST_P(Backfill, ARunThatOutlastsItsPredictionDoesNotVoidTheReservation) {
  // Job 0 holds 6 GPUs for 1000 s and was to end after 100; the whole cluster is reserved for job 1. After 150 s job 0 is
  // expected to end after 200: a job of 300 s would delay the reservation, one of 40 s does not.
  Case given = told_case({{6, 1000, 100}, {8, 100, 100}, {2, 300, 300}, {2, 40, 40}});
  given.workload.jobs[2].arrival = given.workload.jobs[3].arrival = Time(150 * kSecond.value);
  const Schedule schedule = run(given, GetParam());
  EXPECT_EQ(schedule.start[1], Time(1000 * kSecond.value));
  EXPECT_EQ(schedule.start[3], Time(150 * kSecond.value));
  EXPECT_EQ(schedule.start[2], Time(400 * kSecond.value));  // when job 0 is expected to end after 800
}

TEST_P(Backfill, AnExtensionLetsLaterJobsIn) {
  // Nothing happens between 1 s and 1000 s but that job 0 passes what was expected of it.
  const Schedule schedule = run(told_case({{6, 1000, 100}, {8, 100, 100}, {2, 150, 150}}), GetParam());
  EXPECT_EQ(schedule.start[2], Time(200 * kSecond.value));  // job 0 is expected to end after 400
}

INSTANTIATE_TEST_SUITE_P(Policies, Backfill, testing::Values("easy", "conservative"));

class ByPriority : public testing::TestWithParam<const char*> {};

TEST_P(ByPriority, LargerGoesFirst) {
  const Schedule schedule =
      run(told_case({{8, 100, 100}, {8, 90, 90}, {8, 100, 100, 100}, {8, 100, 100, -1}}), GetParam());
  EXPECT_EQ(schedule.start[2], Time(100 * kSecond.value));
  EXPECT_EQ(schedule.start[1], Time(200 * kSecond.value));
  EXPECT_EQ(schedule.start[3], Time(290 * kSecond.value));
}

INSTANTIATE_TEST_SUITE_P(Policies, ByPriority,
                         testing::Values("fifo", "fifo-skip", "fifo-pack", "sjf", "sjf-skip", "srsf", "srsf-skip",
                                         "edf", "edf-skip", "easy", "conservative"));

TEST(Policies, UnknownNamesAndOptionsAreAnswered) {
  EXPECT_NE(make_policy("fiffo").error().message().find("fifo"), std::string::npos);
  EXPECT_NE(make_policy("2d-las:q9=1").error().message().find("q1"), std::string::npos);
  EXPECT_FALSE(make_policy("2d-las:q1=x").ok());
  EXPECT_TRUE(make_policy("2d-las:q1=10,q2=100").ok());
}

TEST(Policies, OptionsOutOfRangeOrTwiceAreRefused) {
  for (const char* text : {"gavel:round=0",
                           "gavel:round=-1",
                           "gavel:round=1e-9",
                           "gavel:round=1e300",
                           "gavel:pack=2",
                           "gavel:pack=0.5",
                           "gavel:round=60,round=120",
                           "gavel:",
                           "gavel:round=60,",
                           "gavel:round=nan",
                           "gavel:round=inf",
                           "themis:lease=0",
                           "themis:filter=0",
                           "themis:filter=2",
                           "sia:round=0",
                           "sia:power=-1",
                           "sia:run=-1",
                           "2d-las:q1=-5",
                           "2d-las:q1=100,q2=10",
                           "optimus:interval=-1",
                           "pollux:interval=-1",
                           "allox:alpha=2",
                           "allox:alpha=-0.1",
                           "hydra:nodes=-1",
                           "hydra:nodes=1.5",
                           "hydra:steps=-1",
                           "fifo-pack:gain=-1"}) {
    EXPECT_FALSE(make_policy(text).ok()) << text;
  }
  EXPECT_NE(make_policy("gavel:round=0").error().message().find("round=0 is out of range: 1 to"), std::string::npos);
  EXPECT_NE(make_policy("gavel:round=60,round=120").error().message().find("twice"), std::string::npos);
}

}  // namespace
}  // namespace forerun::cluster
