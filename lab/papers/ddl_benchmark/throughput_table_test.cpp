#include "lab/papers/ddl_benchmark/throughput_table.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

constexpr const char* kThroughputHeading = "dnn,bs_per_gpu,connection,method,gpus,samples_per_s,std\n";

TEST(ThroughputTable, ReadsRows) {
  const auto rows =
      throughputs_from_text(std::string(kThroughputHeading) +
                                "ResNet-50,64,10GbE with TCP/IP,WFBP-A2A,8,1795.740,2.67\r\nBERT,8,x,BSP-PS,1,49,\n",
                            "made up");
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ(rows->front().connection, "10GbE with TCP/IP");
  EXPECT_EQ(rows->front().gpus, 8);
  EXPECT_DOUBLE_EQ(rows->front().samples_per_second, 1795.74);
  EXPECT_EQ(rows->back().batch, 8);
}

TEST(ThroughputTable, NamesTheLineOfABrokenRow) {
  for (const char* row : {"a,64,b,c,8\n", "a,x,b,c,8,1\n", "a,64,b,c,0,1\n", "a,64,b,c,8,nan\n", "a,64,b,c,8,-1\n"}) {
    const auto rows = throughputs_from_text(std::string(kThroughputHeading) + row, "made up");
    ASSERT_FALSE(rows.ok()) << row;
    EXPECT_NE(rows.error().message().find("line 2"), std::string::npos) << rows.error().message();
  }
  EXPECT_FALSE(throughputs_from_text("", "made up").ok());
  EXPECT_FALSE(throughputs_from_text("dnn,gpus\n", "made up").ok());
}

}  // namespace
}  // namespace forerun
