#include "lab/calibrate/device_models.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "predict/predict.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

class DeviceModels : public testing::Test {
 protected:
  DeviceModels() : folder_(fs::path(testing::TempDir()) / "device_models_test") {
    fs::remove_all(folder_);
    auto cost_models = load_cost_models({}, Trees::without);
    EXPECT_TRUE(cost_models.ok());
    if (cost_models) cost_models_.emplace(std::move(*cost_models));
  }
  ~DeviceModels() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  [[nodiscard]] OtherGpuRuns neusight() const {
    return runs_of_neusight(folder_.string(), cost_models_->devices, known());
  }
  [[nodiscard]] OtherGpuRuns lambda() const { return runs_of_lambda(folder_.string(), cost_models_->devices, known()); }
  [[nodiscard]] KnowledgeFor known() const {
    return [this](const Device&) -> const CostModels& { return *cost_models_; };
  }

  fs::path folder_;
  std::optional<CostModels> cost_models_;
};

constexpr const char* kSmallBert =
    R"({"model_type": "bert", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 512, "max_position_embeddings": 512, "vocab_size": 1000})";

TEST_F(DeviceModels, NeuSightsLabelsTellModelLengthAndBatch) {
  put("DLmodel_configs/small.json", kSmallBert);
  put("label/Tesla_T4/small-inf-64-4.json", R"({"fw_latency": 3.5, "bwall_latency": 0})");
  put("label/Tesla_T4/small-train-64-4.json", R"({"fw_latency": 3.5, "bwall_latency": 6.5})");
  const OtherGpuRuns found = neusight();
  ASSERT_EQ(found.runs.size(), 2U) << (found.problems.empty() ? "" : found.problems.front());
  const OtherGpuRun& forward = found.runs[0];
  const OtherGpuRun& both = found.runs[1];
  EXPECT_EQ(forward.what, "forward");
  EXPECT_EQ(forward.length, 64);
  EXPECT_EQ(forward.batch, 4);
  EXPECT_DOUBLE_EQ(forward.measured_ms, 3.5);
  EXPECT_DOUBLE_EQ(both.measured_ms, 10);
  EXPECT_GT(forward.predicted_ms, 0);
  EXPECT_GT(both.predicted_ms, 1.5 * forward.predicted_ms);
}

TEST_F(DeviceModels, WhatCannotBePredictedIsNamedAndTheRestGoesOn) {
  put("DLmodel_configs/small.json", kSmallBert);
  put("DLmodel_configs/odd.json", R"({"model_type": "mamba"})");
  put("label/Tesla_T4/odd-inf-64-4.json", R"({"fw_latency": 3.5, "bwall_latency": 0})");
  put("label/Tesla_T4/small-inf-64-4.json", R"({"fw_latency": 3.5, "bwall_latency": 0})");
  put("label/abacus/small-inf-64-4.json", R"({"fw_latency": 3.5, "bwall_latency": 0})");
  const OtherGpuRuns found = neusight();
  EXPECT_EQ(found.runs.size(), 1U);
  ASSERT_EQ(found.problems.size(), 2U);
  const std::string problems = found.problems[0] + found.problems[1];
  EXPECT_NE(problems.find("mamba"), std::string::npos);
  EXPECT_NE(problems.find("abacus"), std::string::npos);
}

TEST_F(DeviceModels, AFolderWithoutLabelsIsAProblem) {
  const OtherGpuRuns found = neusight();
  EXPECT_TRUE(found.runs.empty());
  ASSERT_EQ(found.problems.size(), 1U);
  EXPECT_NE(found.problems[0].find("no labels"), std::string::npos);
}

TEST_F(DeviceModels, LambdasTablesAreReadTogether) {
  const std::string heading = "name,num_gpu,resnet50,bert_base_squad,waveglow\n";
  for (const char* precision : {"fp32", "fp16"}) {
    put(std::string("pytorch-train-bs-") + precision + ".csv",
        heading + "RTX 3090,1,32,8,4\nRTX 3090,2,64,16,8\nLambdaCloud V100 16GB,1,16,,4\n");
    put(std::string("pytorch-train-throughput-") + precision + ".csv",
        heading + "RTX 3090,1,400,100,9e4\nRTX 3090,2,800,200,9e4\nLambdaCloud V100 16GB,1,320,n/a,9e4\n");
  }
  const OtherGpuRuns found = lambda();
  EXPECT_TRUE(found.problems.empty()) << found.problems.front();
  // Both precisions: the 3090 with both models, the V100 without a figure of BERT. No model for waveglow.
  ASSERT_EQ(found.runs.size(), 6U);
  const auto resnet = std::find_if(found.runs.begin(), found.runs.end(), [](const OtherGpuRun& run) {
    return run.gpu.find("3090") != std::string::npos && run.model == "resnet50" && run.what == "training";
  });
  ASSERT_NE(resnet, found.runs.end());
  EXPECT_EQ(resnet->batch, 32);
  EXPECT_DOUBLE_EQ(resnet->measured_ms, 80);  // 32 at 400 a second
  EXPECT_GT(resnet->predicted_ms, 8);
  EXPECT_LT(resnet->predicted_ms, 800);
}

TEST_F(DeviceModels, TheMeasuredGpuIsTheYardstickOfLambdasSoftware) {
  const std::string heading = "name,num_gpu,resnet50\n";
  const auto judged = [&](const std::string& rate) {
    for (const char* precision : {"fp32", "fp16"}) {
      const std::string end = std::string(precision) + ".csv";
      put("pytorch-train-bs-" + end, heading + "RTX 3090,1,32\nH100 80GB SXM5,1,64\n");
      put("pytorch-train-throughput-" + end, heading + "RTX 3090,1,400\n");
      put("pytorch-train-throughput-v2-" + end, ",resnet50\nx_8xH200_y,9\nx_1xH200_y," + rate + "\n");
    }
    return lambda();
  };
  EXPECT_EQ(judged("1").runs.size(), 0U);  // another software, or something else that bounds it
  ASSERT_FALSE(judged("1").problems.empty());
  EXPECT_NE(judged("1").problems.front().find("resnet50"), std::string::npos);
  const auto h200 = *cost_models_->devices.find("h200");
  ModelRequest request;
  request.model = "resnet50";
  request.batch = 64;
  request.setup.precision = Precision::tf32;
  const double ms = milliseconds(predicted_times(*build_run(request, h200), h200, *cost_models_).iteration);
  const OtherGpuRuns found = judged(std::to_string(64e3 / ms / 1.2));  // takes 1.2 times as long as predicted
  ASSERT_FALSE(found.runs.empty());
  EXPECT_NEAR(found.runs[0].yardstick, 1.2, 1e-4);
  EXPECT_NEAR(found.runs[0].ratio(), 80 / found.runs[0].predicted_ms / 1.2, 1e-3);
}

}  // namespace
}  // namespace forerun
