// `forerun predict --with`: handed over by forerun, answered by forerun-lab.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program_outcome.h"
#include "lab/learn/predictors.h"

namespace forerun::cli {
namespace {

class PredictWith : public testing::Test {
 protected:
  void SetUp() override {
    if (learn::predictors().empty()) GTEST_SKIP() << "built without LibTorch";
  }
};

TEST_F(PredictWith, PutsTheAnswerBesideForerun) {
  const Outcome own = forerun_outcome("predict resnet18 --batch 8 --json");
  const Outcome both = forerun_outcome("predict resnet18 --batch 8 --with gbdt,mlp --json");
  ASSERT_EQ(both.code, 0) << both.out;
  const auto json = nlohmann::json::parse(both.out);
  EXPECT_EQ(json.at("iter_ms"), nlohmann::json::parse(own.out).at("iter_ms"));
  ASSERT_EQ(json.at("with").size(), 2U);
  EXPECT_EQ(json["with"][0]["predictor"], "gbdt");
  for (const auto& answer : json["with"]) {
    EXPECT_GT(answer.at("iter_ms").get<double>(), 0);
    EXPECT_GT(answer.at("peak_allocated").get<int64_t>(), 0);
    EXPECT_GT(answer.at("judged_mre").at("iteration_ms").get<double>(), 0);
  }
}

TEST_F(PredictWith, HabitatAndNeuSightTellOfOtherGpus) {
  const Outcome outcome = forerun_outcome("predict resnet18 --batch 8 --gpu l4 --with habitat,neusight --json");
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const auto& answer : json.at("with")) {
    EXPECT_GT(answer.at("gpu_ms").get<double>(), 0);
    EXPECT_NE(answer.at("based_on").get<std::string>().find("NVIDIA L4"), std::string::npos);
    EXPECT_FALSE(answer.contains("peak_allocated"));
  }
  const std::string path = testing::TempDir() + "/other_gpu_jobs.csv";
  std::ofstream(path) << "id,model,batch,iterations,duration\na,resnet18,64,1000,30\nb,resnet50,64,1000,40\n";
  const Outcome asked = forerun_outcome("schedule " + path + " --gpus t4=1 --policy sjf --predictor neusight --json");
  EXPECT_EQ(asked.code, 0) << asked.out;
  EXPECT_NE(asked.out.find("2 jobs predicted by neusight"), std::string::npos) << asked.out;
  std::filesystem::remove(path);
}

TEST_F(PredictWith, WritesTheTraceOfOps) {
  const std::string path = testing::TempDir() + "/predict_with_ops.csv";
  const Outcome outcome = forerun_outcome("predict resnet18 --batch 8 --with ets --op-csv " + path);
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  std::ifstream file(path);
  std::string heading;
  std::getline(file, heading);
  EXPECT_EQ(heading, "op,name,phase,module,predicted_gpu_us,predicted_gap_us");
  std::filesystem::remove(path);
}

TEST_F(PredictWith, RefusesWhatCannotBeAsked) {
  expect_refused("predict resnet18 --with etz", 1, "ets");
  expect_refused("predict resnet18 --with gbdt --gpu t4", 1, "trained on an NVIDIA H200");
  expect_refused("predict resnet18 --with gbdt --op-csv /dev/null", 1, "times of ops");
  expect_refused("predict resnet18 --with gbdt --csv", 2, "--json");
  expect_refused("predict resnet18 --with gbdt,mlp --weights data", 2, "one predictor");
  expect_refused("predict resnet18 --op-svg trace.svg", 2, "--with ets");
  expect_refused("predict no_such_model --with gbdt", 1, "no_such_model");
}

TEST_F(PredictWith, ScheduleAsksALearnedPredictorAboutJobsThatNameModels) {
  const std::string path = testing::TempDir() + "/learned_jobs.csv";
  std::ofstream(path) << "id,model,batch,iterations,duration\na,resnet18,64,1000,30\nb,resnet50,64,1000,40\n";
  const Outcome asked = forerun_outcome("schedule " + path + " --gpus h200=1 --policy sjf --predictor gbdt --json");
  ASSERT_EQ(asked.code, 0) << asked.out;
  EXPECT_NE(asked.out.find("2 jobs predicted by gbdt"), std::string::npos) << asked.out;
  const Outcome other = forerun_outcome("schedule " + path + " --gpus t4=1 --policy sjf --predictor gbdt");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.out.find("error-like:gbdt"), std::string::npos) << other.out;
  std::ofstream(path) << "id,duration\na,30\n";
  const Outcome nameless = forerun_outcome("schedule " + path + " --gpus h200=1 --policy sjf --predictor gbdt");
  EXPECT_EQ(nameless.code, 1);
  EXPECT_NE(nameless.out.find("name no models"), std::string::npos) << nameless.out;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace forerun::cli
