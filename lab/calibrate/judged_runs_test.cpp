#include "lab/calibrate/judged_runs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace forerun {
namespace {

namespace fs = std::filesystem;

class JudgedRuns : public testing::Test {
 protected:
  JudgedRuns() : folder_(fs::path(testing::TempDir()) / "judged_runs_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    auto cost_models = load_cost_models({}, Trees::without);
    EXPECT_TRUE(cost_models.ok());
    if (cost_models) cost_models_.emplace(std::move(*cost_models));
  }
  ~JudgedRuns() override { fs::remove_all(folder_); }

  using RunsOf = OtherGpuRuns(const std::string&, const DeviceCatalogue&, const KnowledgeFor&);
  [[nodiscard]] OtherGpuRuns found(RunsOf* runs_of, const char* file, const std::string& text) const {
    std::ofstream(folder_ / file) << text;
    return runs_of(folder_.string(), cost_models_->devices,
                   [this](const Device&) -> const CostModels& { return *cost_models_; });
  }

  fs::path folder_;
  std::optional<CostModels> cost_models_;
};

constexpr const char* kLayers = "model,node,layer,fwd_ms,bwd_ms,activation_bytes,param_bytes\n";
// Of 32 images: what the first convolution of AlexNet gives.
constexpr const char* kAlexNet =
    "alexnet,node1,Input,635,0,0,0\n"
    "alexnet,node2,\"Conv2d(3, 64, kernel_size=(11, 11), stride=(4, 4), padding=(2, 2))\",2.5,1.5,24780800.000,93440\n"
    "alexnet,node3,ReLU(inplace),0.5,0.25,24780800.000,0\n";

TEST_F(JudgedRuns, PipeDreamsLayersTellBatchAndBackwardPass) {
  const OtherGpuRuns runs = found(runs_of_pipedream, "layer_profiles.csv", std::string(kLayers) + kAlexNet);
  ASSERT_EQ(runs.runs.size(), 1U) << (runs.problems.empty() ? "" : runs.problems.front());
  const OtherGpuRun& run = runs.runs.front();
  EXPECT_EQ(run.batch, 32);
  EXPECT_EQ(run.what, "backward");
  EXPECT_DOUBLE_EQ(run.measured_ms, 1.75) << "neither images read nor forward passes";
  EXPECT_TRUE(run.judged_alone);
  EXPECT_GT(run.roofline_ms, 0);
  EXPECT_GT(run.predicted_ms, run.roofline_ms) << "nothing is faster than its roofline";
}

TEST_F(JudgedRuns, WhatPipeDreamsTableDoesNotTellIsNamed) {
  const auto problems_of = [&](const std::string& rows) {
    const OtherGpuRuns runs = found(runs_of_pipedream, "layer_profiles.csv", rows);
    EXPECT_TRUE(runs.runs.empty()) << rows;
    return runs.problems.empty() ? "" : runs.problems.front();
  };
  EXPECT_NE(problems_of(std::string(kLayers) + "nasnet,node1,Input,1,1,0,0\n").find("nasnet"), std::string::npos);
  // An eleventh of an image more than 32 of them.
  EXPECT_NE(problems_of(std::string(kLayers) + "alexnet,n,\"Conv2d(3, 64)\",1,1,24851200,0\n").find("whole number"),
            std::string::npos);
  EXPECT_NE(problems_of(std::string(kLayers) + "alexnet,n,\"Conv2d(3, 64)\",1,fast,24780800,0\n").find("bwd_ms"),
            std::string::npos);
  EXPECT_NE(problems_of("model,layer\nalexnet,x\n").find("bwd_ms"), std::string::npos);
  fs::remove(folder_ / "layer_profiles.csv");
  const OtherGpuRuns none = runs_of_pipedream(folder_.string(), cost_models_->devices,
                                              [this](const Device&) -> const CostModels& { return *cost_models_; });
  ASSERT_EQ(none.problems.size(), 1U);
}

TEST_F(JudgedRuns, OneGpuOfHkbusTableCountsOnce) {
  const OtherGpuRuns runs = found(runs_of_hkbu, "throughput.csv",
                                  "dnn,bs_per_gpu,connection,method,gpus,samples_per_s,std\n"
                                  "ResNet-50,64,10GbE with TCP/IP,BSP-A2A,1,200,\n"
                                  "ResNet-50,64,10GbE with TCP/IP,BSP-A2A,4,700,4.4\n"
                                  "ResNet-50,64,100GbE with TCP/IP,WFBP-A2A,1,200,\n"
                                  "BERT-Base,64,10GbE with TCP/IP,BSP-A2A,1,160,\n"
                                  "Abacus,64,10GbE with TCP/IP,BSP-A2A,1,160,\n");
  ASSERT_EQ(runs.runs.size(), 2U);
  EXPECT_EQ(runs.runs[0].model, "resnet50");
  EXPECT_DOUBLE_EQ(runs.runs[0].measured_ms, 320);
  EXPECT_EQ(runs.runs[1].length, 64);
  EXPECT_TRUE(runs.runs[1].judged_alone);
}

TEST_F(JudgedRuns, OfLlmFoundryOneMachineWithoutCheckpointing) {
  const std::string heading =
      "Model,SeqLen (T),# GPUs,GPU,MFU,HFU,Model TFLOP,MicroBatchSize,GradAccum,GlobalBatchSize,Throughput (S/s),"
      "Throughput (T/s),Throughput (T/s/GPU),GlobalBatchSize (T),Precision,MP Mode,Sharding Strategy,Activation "
      "Checkpointing,Activation CPUOffload,NumParams,section\n";
  const auto row = [](const std::string& gpus, const std::string& length, const std::string& checkpointing) {
    return "125m," + length + "," + gpus +
           ",a100_80gb,40,40,1,4,1,32,80,163840,20480,65536,amp_bf16,DEFAULT,FULL_SHARD," + checkpointing +
           ",False,125000000,A100 80GB\n";
  };
  const OtherGpuRuns runs = found(runs_of_foundry, "benchmark.csv",
                                  heading + row("8", "2048", "False") + row("8", "2048", "True") +
                                      row("16", "2048", "False") + row("8", "16384", "False"));
  ASSERT_EQ(runs.runs.size(), 1U) << (runs.problems.empty() ? "" : runs.problems.front());
  const OtherGpuRun& run = runs.runs.front();
  EXPECT_EQ(run.batch, 4);
  EXPECT_EQ(run.precision, Precision::bf16);
  EXPECT_NEAR(run.measured_ms, 400, 0.1);  // 4 x 2048 tokens at 20,480 a second
  EXPECT_GT(run.predicted_ms, run.roofline_ms);
}

}  // namespace
}  // namespace forerun
