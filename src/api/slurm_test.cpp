// What Slurm is told and what it says, without a Slurm: tests/slurm_test.py has a real one.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "api/slurm_cluster.h"
#include "api/slurm_limits.h"

namespace forerun {
namespace {

const Knowledge& limits_knowledge() {
  static const Result<Knowledge> loaded = load_knowledge();
  return *loaded;
}

LimitOptions options() {
  LimitOptions given;
  given.setup = [](const std::string& precision, const std::string&) {
    TrainingSetup setup;
    if (!precision.empty()) setup.precision = *precision_named(precision);
    return Result<TrainingSetup>(setup);
  };
  return given;
}

std::string write_file(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(SlurmLimits, TimeOfAModelScalesWithItsIterations) {
  const auto few = predict_limit("model=resnet18 batch=32 iterations=1000", options(), limits_knowledge());
  const auto many = predict_limit("model=resnet18 batch=32 iterations=100000", options(), limits_knowledge());
  ASSERT_TRUE(few) << few.error().message();
  ASSERT_TRUE(many) << many.error().message();
  EXPECT_GT(few->step.value, 0);
  EXPECT_GT(few->memory.value, int64_t{100} << 20);
  EXPECT_NEAR(many->seconds / few->seconds, 100, 1e-6);
  EXPECT_GT(static_cast<double>(many->limit_minutes) * 60, many->seconds * 1.2);
  EXPECT_GT(few->priority, many->priority);
}

TEST(SlurmLimits, RowsAtFaultAreNamedAndTheOthersGoOn) {
  const std::string path = write_file("limits.csv",
                                      "id,model,batch,iterations,gpus,duration\n"
                                      "a,resnet18,16,100,1,\n"
                                      "b,no_such_model,16,100,1,\n"
                                      "c,,,,2,90\n"
                                      "d,resnet18,16,,1,\n");
  std::vector<std::string> faults;
  const auto limits = predict_limits(path, options(), limits_knowledge(),
                                     [&](const Error& error) { faults.push_back(error.message()); });
  ASSERT_TRUE(limits) << limits.error().message();
  ASSERT_EQ(limits->size(), 2U);
  EXPECT_EQ((*limits)[0].job, "a");
  EXPECT_EQ((*limits)[1].seconds, 90);
  EXPECT_EQ((*limits)[1].limit_minutes, 3);  // 90 s and a fifth, and a minute
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_NE(faults[0].find("limits.csv:3"), std::string::npos) << faults[0];
  EXPECT_NE(faults[1].find("iterations"), std::string::npos) << faults[1];
}

TEST(SlurmLimits, ReadsWhatItWrites) {
  JobLimit limit;
  limit.job = "train-7";
  limit.seconds = 12.5;
  limit.limit_minutes = 3;
  limit.priority = 123456;
  const auto read = read_limits(write_file("written.csv", limits_csv({limit})));
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().job, "train-7");
  EXPECT_EQ(read->front().limit_minutes, 3);
  EXPECT_EQ(read->front().priority, 123456);
}

TEST(SlurmLimits, PriorityFallsWithTime) {
  EXPECT_GT(priority_of(10), priority_of(11));
  EXPECT_GT(priority_of(1e6), priority_of(1e6 + 1));
  EXPECT_GE(priority_of(1e12), 1);
  EXPECT_LE(priority_of(0), 32'000'000);
}

TEST(SlurmLimits, AGangTakesLongerForWhatItSaysToItself) {
  const auto seconds = [](const std::string& gpus, const char* network) {
    LimitOptions given = options();
    given.network.link = network;
    return predict_limit("model=resnet50 batch=32 iterations=1000 gpus=" + gpus, given, limits_knowledge())->seconds;
  };
  const double alone = seconds("1", "100gbe");
  EXPECT_GT(seconds("8", "100gbe"), alone);
  EXPECT_GT(seconds("16", "100gbe"), seconds("8", "100gbe"));
  EXPECT_GT(seconds("16", "1gbe"), 2 * seconds("16", "100gbe"));
  LimitOptions given = options();
  given.network.link = "pigeons";
  EXPECT_FALSE(predict_limit("model=resnet50 iterations=1000 gpus=2", given, limits_knowledge()));
}

TEST(SlurmLimits, LeastGpuTimeCountsTheGang) {
  LimitOptions by_area = options();
  by_area.order = JobOrder::least_gpu_time;
  const auto narrow = predict_limit("duration=100 gpus=1", by_area, limits_knowledge());
  const auto wide = predict_limit("duration=60 gpus=4", by_area, limits_knowledge());
  EXPECT_GT(narrow->priority, wide->priority);
}

// As Slurm 22.05 prints it.
const char* const kShown =
    "JobId=7 JobName=a Priority=1 JobState=RUNNING Reason=None RunTime=00:09:10 TimeLimit=00:10:00 TimeMin=N/A "
    "SubmitTime=1700000000 StartTime=1700000005 EndTime=1700000605 "
    "AdminComment=forerun: predicted 400 s, 900 MiB of GPU memory, hard limit 12 min Power= \n"
    "JobId=8 JobName=b JobState=COMPLETED RunTime=1-00:00:02 TimeLimit=UNLIMITED SubmitTime=1700000001 "
    "StartTime=1700000006 EndTime=1700086408 \n"
    "slurm_load_jobs: something else\n";

TEST(SlurmCluster, ReadsJobs) {
  const std::vector<SlurmJob> jobs = parse_jobs(kShown);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].name, "a");
  EXPECT_EQ(jobs[0].run_seconds, 550);
  EXPECT_EQ(jobs[0].limit_seconds, 600);
  EXPECT_EQ(jobs[0].hard_limit_min, 12);
  EXPECT_FALSE(jobs[0].over());
  EXPECT_EQ(jobs[1].run_seconds, 86402);
  EXPECT_EQ(jobs[1].limit_seconds, 0);
  EXPECT_EQ(jobs[1].end - jobs[1].start, 86402);
  EXPECT_TRUE(jobs[1].over());
}

TEST(SlurmCluster, RaisesASoftLimitNoFurtherThanTheUsers) {
  std::vector<std::string> updates;
  const CommandRunner run = [&](const std::vector<std::string>& command) {
    if (command[1] == "-o") return Result<std::string>(kShown);
    updates.push_back(command[2] + " " + command[3]);
    return Result<std::string>("");
  };
  const auto raised = extend_limits(120, 0.5, run);
  ASSERT_TRUE(raised);
  EXPECT_EQ(updates, (std::vector<std::string>{"JobId=7 TimeLimit=12"}));
  updates.clear();
  EXPECT_TRUE(extend_limits(30, 0.5, run)->empty());
}

TEST(SlurmCluster, ReplaysAndComparesWithTheSimulator) {
  // A Slurm that starts b before a, where the simulator does the opposite.
  std::vector<std::vector<std::string>> submitted;
  const CommandRunner run = [&](const std::vector<std::string>& command) {
    if (command[0] == "sbatch") {
      submitted.push_back(command);
      return Result<std::string>(std::to_string(submitted.size()) + "\n");
    }
    return Result<std::string>(
        "JobId=1 JobName=a JobState=COMPLETED SubmitTime=100 StartTime=106 EndTime=110 \n"
        "JobId=2 JobName=b JobState=COMPLETED SubmitTime=100 StartTime=101 EndTime=106 \n");
  };
  cluster::Workload workload;
  workload.jobs.resize(2);
  workload.ids = {"a", "b"};
  workload.truth = cluster::Durations(1);
  workload.truth.add(cluster::time_from_seconds(4));
  workload.truth.add(cluster::time_from_seconds(5));
  SlurmReplayOptions given;
  given.run = run;
  given.policy = "fifo";
  given.cluster.pools = {{"gpu", 1}};
  given.limits["b"].limit_minutes = 9;
  given.limits["b"].priority = 77;
  const auto replay = replay_on_slurm(workload, given);
  ASSERT_TRUE(replay) << replay.error().message();
  EXPECT_EQ(replay->jobs[0].start, 6);
  EXPECT_EQ(replay->jobs[1].end, 6);
  EXPECT_EQ(replay->pairs, 1);
  EXPECT_EQ(replay->pairs_alike, 0);
  const auto has = [&](size_t job, const std::string& word) {
    return std::find(submitted[job].begin(), submitted[job].end(), word) != submitted[job].end();
  };
  EXPECT_FALSE(has(0, "--time"));
  EXPECT_TRUE(has(1, "--time") && has(1, "77"));
  EXPECT_TRUE(has(0, "sleep 4.000"));
}

TEST(SlurmCluster, SaysWhichCommandIsNotThere) {
  const auto answer = run_command({"no-such-slurm-command"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().where, "no-such-slurm-command");
}

}  // namespace
}  // namespace forerun
