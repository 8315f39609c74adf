// What Slurm is told about jobs, without a Slurm: tests/slurm_test.py has a real one.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "report/slurm.h"
#include "slurm/slurm_limits.h"

namespace forerun {
namespace {

const CostModels& limits_cost_models() {
  static const Result<CostModels> loaded = load_cost_models();
  return *loaded;
}

LimitOptions options() { return {}; }

std::string write_file(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(SlurmLimits, TimeOfAModelScalesWithItsIterations) {
  const auto few = predict_limit("model=resnet18 batch=32 iterations=1000", options(), limits_cost_models());
  const auto many = predict_limit("model=resnet18 batch=32 iterations=100000", options(), limits_cost_models());
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
  const auto limits = predict_limits(path, options(), limits_cost_models(),
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
    return predict_limit("model=resnet50 batch=32 iterations=1000 gpus=" + gpus, given, limits_cost_models())->seconds;
  };
  const double alone = seconds("1", "100gbe");
  EXPECT_GT(seconds("8", "100gbe"), alone);
  EXPECT_GT(seconds("16", "100gbe"), seconds("8", "100gbe"));
  EXPECT_GT(seconds("16", "1gbe"), 2 * seconds("16", "100gbe"));
  LimitOptions given = options();
  given.network.link = "pigeons";
  EXPECT_FALSE(predict_limit("model=resnet50 iterations=1000 gpus=2", given, limits_cost_models()));
}

TEST(SlurmLimits, LeastGpuTimeCountsTheGang) {
  LimitOptions by_area = options();
  by_area.order = JobOrder::least_gpu_time;
  const auto narrow = predict_limit("duration=100 gpus=1", by_area, limits_cost_models());
  const auto wide = predict_limit("duration=60 gpus=4", by_area, limits_cost_models());
  EXPECT_GT(narrow->priority, wide->priority);
}

TEST(SlurmLimits, RefusesWhatMakesNoSense) {
  for (const char* text :
       {"model=resnet18 batch=32 iterations=1e30", "model=resnet18 batch=32 iterations=nan",
        "model=resnet18 batch=32 iterations=-1", "model=resnet18 batch=32 iterations=1.5",
        "model=resnet18 batch=1.5 iterations=1", "model=resnet18 batch=1 batch=2 iterations=1", "duration=-1",
        "model=resnet18 batch=32 iterations=1000000000000", "duration=1 gpus=0", "model= iterations=5", ""}) {
    const auto limit = predict_limit(text, options(), limits_cost_models());
    ASSERT_FALSE(limit) << text;
    EXPECT_FALSE(limit.error().remedy.empty()) << text << ": " << limit.error().message();
  }
}

TEST(SlurmLimits, AreSortedAndNameEachJobOnce) {
  std::vector<std::string> faults;
  const auto read = [&](const char* rows) {
    faults.clear();
    return predict_limits(write_file("sorted.csv", std::string("id,duration\n") + rows), options(),
                          limits_cost_models(), [&](const Error& error) { faults.push_back(error.message()); });
  };
  const auto limits = read("b,1\na-1,2\nB,3\nb,4\n");
  ASSERT_TRUE(limits) << limits.error().message();
  ASSERT_EQ(limits->size(), 3U);
  EXPECT_EQ((*limits)[0].job, "B");
  EXPECT_EQ((*limits)[1].job, "a-1");
  EXPECT_EQ((*limits)[2].seconds, 1);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_NE(faults[0].find("in line 2 already"), std::string::npos) << faults[0];
  const auto none = read("");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("no rows"), std::string::npos);
}

TEST(SlurmLimits, QuotesADescriptionWithCommas) {
  JobLimit limit;
  limit.job = "model=a optimizer=b:c=1,d=2";
  limit.limit_minutes = limit.priority = 1;
  const auto read = read_limits(write_file("quoted.csv", limits_csv({limit})));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->front().job, limit.job);
}

}  // namespace
}  // namespace forerun
