// What is fitted by the project's own commands, on the measured iterations of data/h200.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/data_dir.h"
#include "lab/calibrate/calibrate_host.h"
#include "lab/calibrate/calibrate_intervals.h"
#include "lab/calibrate/cross_validation.h"
#include "lab/calibrate/train_hybrid.h"
#include "records/data_files.h"

namespace forerun {
namespace {

std::string measured_file() { return (*data_dir() / "h200" / "runs-2.jsonl.zst").string(); }

TEST(CalibrateHost, FitsTheMeasuredIterationsAndWritesWhatPredictReads) {
  ASSERT_TRUE(std::filesystem::exists(measured_file())) << measured_file();
  const std::string out = testing::TempDir() + "/calibrate_host_test.json";
  const auto outcome = calibrate_host(
      {.files = {measured_file()}, .without = {"bert"}, .out = out, .options = {}, .problem = [](const DataProblem&) {
       }});
  ASSERT_TRUE(outcome.ok()) << outcome.error().message();
  EXPECT_GT(outcome->fit.samples, 40U);
  EXPECT_LT(outcome->fit.error, 0.2);
  EXPECT_LT(outcome->held_out_error, 0.25);
  EXPECT_GE(outcome->held_out_error, outcome->fit.error / 2);
  for (const HeldOutFamily& row : outcome->held_out) EXPECT_NE(row.family, "bert");
  const auto read = load_host_constants(out);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->op, outcome->fit.constants.op);
}

TEST(CalibrateHost, NamesTheNearestOfAFamilyThatIsNotThere) {
  const auto families = TrainingPart::beside({measured_file()}, {"resnets"});
  ASSERT_FALSE(families.ok());
  EXPECT_NE(families.error().message().find("resnet"), std::string::npos);
}

TEST(TrainHybrid, LearnsFromIterationsAloneWhereAskedTo) {
  const auto cost_models = load_cost_models({}, Trees::without);
  ASSERT_TRUE(cost_models.ok());
  HybridRequest request{.files = {measured_file(), (*data_dir() / "h200" / "ops-2.jsonl.zst").string()},
                        .growth = {},
                        .problem = [](const DataProblem&) {}};
  const auto alone = [](const hybrid::MeasuredOp& op) { return op.alone; };
  const auto all = hybrid_ops(request, *cost_models);
  ASSERT_TRUE(all.ok()) << all.error().message();
  const auto samples = std::count_if(all->begin(), all->end(), alone);
  EXPECT_GT(samples, 3000);
  request.op_samples = false;
  const auto iterations = hybrid_ops(request, *cost_models);
  ASSERT_TRUE(iterations.ok());
  EXPECT_EQ(std::count_if(iterations->begin(), iterations->end(), alone), 0);
  EXPECT_EQ(std::ssize(*iterations), std::ssize(*all) - samples);
}

TEST(CrossValidation, EveryFamilyIsLeftOutOnce) {
  const std::vector<std::string> families = {"a", "b", "c", "d", "e"};
  EXPECT_EQ(fold_families(families, 0).size(), 5U);
  EXPECT_EQ(fold_families(families, 9).size(), 5U);
  const auto groups = fold_families(families, 2);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0], (std::vector<std::string>{"a", "c", "e"}));
  EXPECT_EQ(groups[1], (std::vector<std::string>{"b", "d"}));
}

TEST(CalibrateIntervals, TellsHostBoundRunsByThePrediction) {
  std::vector<LeftOutRun> runs;
  for (int i = 0; i <= 10; ++i) {
    runs.push_back({.iteration_ms = 10, .host_bound = false, .measured_ms = 9.5 + 0.1 * i});
    runs.push_back({.iteration_ms = 10, .host_bound = true, .measured_ms = 5.0 + 1.0 * i});
  }
  const PredictionIntervals intervals = intervals_over(runs);
  EXPECT_DOUBLE_EQ(intervals.gpu_bound.low, 0.96);
  EXPECT_DOUBLE_EQ(intervals.gpu_bound.high, 1.04);
  EXPECT_DOUBLE_EQ(intervals.host_bound.low, 0.6);
  EXPECT_DOUBLE_EQ(intervals.host_bound.high, 1.4);
}

}  // namespace
}  // namespace forerun
