#include "lab/papers/published_runs.h"

#include <gtest/gtest.h>

namespace forerun::scale {
namespace {

TEST(PublishedRuns, FoundryTable) {
  const auto runs = foundry_runs_from_text(
      "Model,SeqLen (T),# GPUs,GPU,MicroBatchSize,GlobalBatchSize,Throughput (T/s),Precision,Sharding Strategy,"
      "Activation Checkpointing,section\n"
      "7b,2048,16,a100_40gb,8,128,50000,amp_bf16,FULL_SHARD,True,\"A, B\"\n"
      "7b,2048,16,h100_80gb,8,128,50000,amp_fp8,FULL_SHARD,True,x\n",
      "t");
  ASSERT_TRUE(runs) << runs.error().message();
  ASSERT_EQ(runs->runs.size(), 1);
  EXPECT_EQ(runs->passed_over, 1);
  EXPECT_EQ(runs->runs[0].gpu, "a100-40gb");
  EXPECT_EQ(runs->runs[0].zero, 3);
  EXPECT_EQ(transformer_of(runs->runs[0])->hidden, 4096);
  EXPECT_FALSE(foundry_runs_from_text("Model,GPU\n", "t"));
}

}  // namespace
}  // namespace forerun::scale
