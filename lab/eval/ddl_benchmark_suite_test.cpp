#include "lab/eval/ddl_benchmark_suite.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/needs_dataset.h"

namespace forerun {
namespace {

TEST(DdlBenchmarkSuite, ThroughputsOfTheBenchmark) {
  NEEDS_DATASET(file, "hkbu/throughput.csv");
  const auto accuracy = evaluate_ddl_benchmark(file);
  ASSERT_TRUE(accuracy.ok()) << accuracy.error().message();
  EXPECT_EQ(accuracy->cases.size(), 168U);
  EXPECT_LE(accuracy->mean_error(false), 0.12);
  EXPECT_LE(accuracy->mean_error(true), 0.10);
  EXPECT_NE(to_text(*accuracy).find("Mean error of the rows that nothing was fitted to"), std::string::npos);
  std::printf("%.4f without the fitted rows, %.4f with one bandwidth a network\n", accuracy->mean_error(false),
              accuracy->one_bandwidth_error);
}

std::string message_for(const std::string& rows) {
  const std::string path = ::testing::TempDir() + "throughputs.csv";
  std::ofstream(path) << "dnn,bs_per_gpu,connection,method,gpus,samples_per_s,std\n" << rows;
  const auto accuracy = evaluate_ddl_benchmark(path);
  return accuracy ? "" : accuracy.error().message();
}

TEST(DdlBenchmarkSuite, SaysWhatIsMissing) {
  EXPECT_NE(message_for("VGG-16,64,10GbE,BSP-A2A,1,100,\n").find("ResNet-50"), std::string::npos);
  EXPECT_NE(message_for("ResNet-50,64,10GbE,BSP-A2A,8,1000,\n").find("one GPU"), std::string::npos);
  const std::string one = "ResNet-50,64,10GbE,BSP-A2A,1,250,\n";
  EXPECT_NE(message_for(one + "ResNet-50,64,10GbE,WFBP-A2A,8,1900,\n").find("BSP"), std::string::npos);
  EXPECT_NE(message_for(one + "ResNet-50,64,token ring,BSP-A2A,8,1900,\n").find("token"), std::string::npos);
  EXPECT_NE(message_for(one + "ResNet-50,64,10GbE,Gossip,8,1900,\n").find("WFBP"), std::string::npos);
  EXPECT_NE(message_for(one + "ResNet-50,64,10GbE,BSP-A2A,6,1900,\n").find("machines"), std::string::npos);
}

TEST(DdlBenchmarkSuite, ANetworkNobodyNamedIsKnownByItsNumber) {
  EXPECT_EQ(
      message_for("ResNet-50,64,56GbIB with RDMA,BSP-A2A,1,250,\nResNet-50,64,56GbIB with RDMA,BSP-A2A,4,900,\n"
                  "ResNet-50,64,56GbIB with RDMA,BSP-A2A,8,1700,\nResNet-50,64,56GbIB with RDMA,WFBP-A2A,8,1900,\n"),
      "");
}

}  // namespace
}  // namespace forerun
