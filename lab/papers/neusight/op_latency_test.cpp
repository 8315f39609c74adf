#include "lab/papers/neusight/op_latency.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

constexpr const char* kLatencyHeading = "OPName,Latency,Device,Kernel Name,B,M,N,K\n";

TEST(OpLatency, ReadsQuotedNamesAndBuildsTheOp) {
  const auto list = op_latencies_from_text(
      std::string(kLatencyHeading) + "linear,0.25,Tesla T4,\"void f<float, 4>(int, float)\",2,8,16,32\r\n\n",
      "made up");
  ASSERT_TRUE(list.ok()) << list.error().message();
  ASSERT_EQ(list->size(), 1U);
  const OpLatency& op = list->front();
  EXPECT_EQ(op.gpu, "Tesla T4");
  EXPECT_EQ(op.sample.op, "aten.addmm.default");
  EXPECT_DOUBLE_EQ(op.sample.us, 250);
  EXPECT_EQ(op.sample.inputs[1]->shape, (Shape{16, 16}));
  EXPECT_EQ(*op.sample.inputs[2]->strides, (Shape{1, 16}));
  EXPECT_EQ(op.sample.outputs[0]->shape, (Shape{16, 32}));
}

TEST(OpLatency, ComputesTheExtentOfAConvolution) {
  const std::string heading =
      "OPName,Latency,Device,B,Input_Channel,Output_Channel,Kernel_Szie,Input_Size,Stride,Padding\n";
  const auto list = op_latencies_from_text(heading + "conv,1,Tesla P4,2,3,5,3,9,2,1\n", "made up");
  ASSERT_TRUE(list.ok()) << list.error().message();
  EXPECT_EQ(list->front().sample.outputs[0]->shape, (Shape{2, 5, 5, 5}));
  EXPECT_FALSE(op_latencies_from_text(heading + "conv,1,Tesla P4,2,3,5,13,9,2,1\n", "made up").ok());
  EXPECT_FALSE(op_latencies_from_text(heading + "conv,1,Tesla P4,2,3,5,3,9,0,1\n", "made up").ok());
}

TEST(OpLatency, NamesTheLineOfABrokenRow) {
  for (const char* row : {"bmm,0.1,Tesla T4,k,1,2,3,x\n", "bmm,0.1,Tesla T4,k,1,2,3\n", "bmm,-1,Tesla T4,k,1,2,3,4\n",
                          "bmm,nan,Tesla T4,k,1,2,3,4\n", "cat,0.1,Tesla T4,k,1,2,3,4\n", "bmm\n"}) {
    const auto list = op_latencies_from_text(std::string(kLatencyHeading) + row, "made up");
    ASSERT_FALSE(list.ok()) << row;
    EXPECT_NE(list.error().message().find("line 2"), std::string::npos) << list.error().message();
  }
  EXPECT_FALSE(op_latencies_from_text("", "made up").ok());
}

}  // namespace
}  // namespace forerun
