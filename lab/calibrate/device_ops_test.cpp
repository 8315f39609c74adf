#include "lab/calibrate/device_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/needs_dataset.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

class NeuSightOps : public testing::Test {
 protected:
  NeuSightOps() : folder_(fs::path(testing::TempDir()) / "device_ops_test") {
    fs::remove_all(folder_);
    auto cost_models = load_cost_models();
    EXPECT_TRUE(cost_models.ok());
    if (cost_models) cost_models_.emplace(std::move(*cost_models));
  }
  ~NeuSightOps() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& rows) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << "OPName,Latency,Device,Kernel Name,B,M,N,K\n" << rows;
  }

  fs::path folder_;
  std::optional<CostModels> cost_models_;
};

TEST_F(NeuSightOps, LaunchBoundOnesAndCopiesAreLeftOut) {
  put("p2.1.0/linear.csv", "linear,0.25,Tesla T4,k,2,512,1024,1024\nlinear,0.05,Tesla T4,k,2,8,16,32\n");
  put("linear.csv", "linear,0.5,Tesla T4,k,2,512,1024,1024\n");
  const auto ops = load_neusight_ops(folder_.string(), cost_models_->devices);
  ASSERT_TRUE(ops.ok()) << ops.error().message();
  ASSERT_EQ(ops->size(), 1U);
  EXPECT_EQ(ops->front().kind, kMatrixProduct);
  EXPECT_DOUBLE_EQ(ops->front().sample.us, 250);
}

TEST_F(NeuSightOps, ManyAreThinnedEvenly) {
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += "bmm," + std::to_string(1 + i) + ",Tesla T4,k,2,512,512,512\n";
  put("p2.1.0/bmm.csv", rows);
  const auto ops = load_neusight_ops(folder_.string(), cost_models_->devices, 4);
  ASSERT_TRUE(ops.ok()) << ops.error().message();
  ASSERT_EQ(ops->size(), 4U);
  // The first is launching, as far as the table tells.
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ((*ops)[i].sample.us, 1e3 * (2 + std::floor(99.0 * static_cast<double>(i) / 4)));
    EXPECT_DOUBLE_EQ((*ops)[i].least_us, 1e3);
  }
}

TEST_F(NeuSightOps, AMissingFolderSaysHowToUnpack) {
  const auto ops = load_neusight_ops((folder_ / "nothing").string(), cost_models_->devices);
  ASSERT_FALSE(ops.ok());
  EXPECT_NE(ops.error().message().find("tar"), std::string::npos);
}

TEST_F(NeuSightOps, AreCarriedToTheirGpu) {
  put("p2.1.0/bmm.csv",
      "bmm,2,Tesla T4,k,8,1024,1024,1024\nbmm,1,Tesla V100-SXM2-32GB,k,8,1024,1024,1024\n"
      "bmm,0.03,Tesla T4,k,1,2,2,2\nbmm,0.04,Tesla V100-SXM2-32GB,k,1,2,2,2\n");
  const auto ops = load_neusight_ops(folder_.string(), cost_models_->devices);
  ASSERT_TRUE(ops.ok()) << ops.error().message();
  const auto carried = carried_ops(*ops, *cost_models_, {});
  ASSERT_EQ(carried.size(), 2U);
  const double flops = 2.0 * 8 * 1024 * 1024 * 1024;
  const double t4_us = flops / (cost_models_->devices.find("t4")->peak.fp32 * 1e-6);
  EXPECT_EQ(carried[0].kind, kMatrixProduct);
  EXPECT_DOUBLE_EQ(carried[0].us, 2000);
  EXPECT_GE(carried[0].row.analytic_us, 0.99 * t4_us);  // no faster than the board's peak
  EXPECT_GT(carried[0].row.analytic_us, 1.2 * carried[1].row.analytic_us);
  EXPECT_GT(carried[0].row.memory_us, 0);  // its check bits lie beside the data
  EXPECT_DOUBLE_EQ(carried[1].row.memory_us, 0);
  EXPECT_DOUBLE_EQ(carried[0].row.correction, carried[1].row.correction);  // one op, corrected as where it was measured
}

TEST_F(NeuSightOps, OpsOfModelsAreReadFromTheLabels) {
  fs::create_directories(folder_ / "label" / "Tesla_T4");
  fs::create_directories(folder_ / "label" / "abacus");
  for (const char* gpu : {"Tesla_T4", "abacus"}) {
    std::ofstream(folder_ / "label" / gpu / "small-inf-64-4.csv")
        << "op,target,input_shapes,fw_latency,output_shape\n"
           "call_module,a.dense,\"[[512, 1024]]\",0.25,\"(512, 1024)\"\n"
           "call_module,a.dense,\"[[5, 10]]\",0.05,\"(5, 10)\"\n";
  }
  const auto ops = load_neusight_model_ops(folder_.string(), cost_models_->devices);
  ASSERT_TRUE(ops.ok()) << ops.error().message();
  ASSERT_EQ(ops->size(), 1U);
  EXPECT_EQ(ops->front().gpu, "Tesla T4");
  EXPECT_EQ(ops->front().kind, "matrix product in models");
  EXPECT_FALSE(load_neusight_model_ops((folder_ / "nothing").string(), cost_models_->devices).ok());
}

TEST_F(NeuSightOps, BoardsOfOneChipAreOne) {
  const DeviceCatalogue& devices = cost_models_->devices;
  EXPECT_EQ(chip_of(*devices.find("a100-pcie-40gb")), chip_of(*devices.find("a100")));
  EXPECT_NE(chip_of(*devices.find("t4")), chip_of(*devices.find("2080ti")));
}

TEST_F(NeuSightOps, ConvolutionsOfEts) {
  NEEDS_DATASET(folder, "ets");
  const auto ops = load_ets_convolutions(folder, cost_models_->devices, 40);
  ASSERT_TRUE(ops.ok()) << ops.error().message();
  EXPECT_EQ(ops->size(), 80U);  // of each GPU
  for (const DeviceOp& op : *ops) {
    const bool backward = op.kind == "convolution, backward in models";
    EXPECT_TRUE(backward || op.kind == "convolution in models") << op.kind;
    EXPECT_DOUBLE_EQ(op.least_us, 0);
    EXPECT_EQ(op.sample.inputs.size(), backward ? 3U : 2U);
    EXPECT_GE(op.sample.us, 50);
  }
}

}  // namespace
}  // namespace forerun
