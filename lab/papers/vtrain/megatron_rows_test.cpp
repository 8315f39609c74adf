#include "lab/papers/vtrain/megatron_rows.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace forerun {
namespace {

constexpr const char* kHeader =
    "\xEF\xBB\xBF# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor "
    "parallelism,data parallelism,pipeline parallelism,iteration time (ms)\n";

TEST(MegatronRows, ReadsByHeader) {
  const auto rows = megatron_rows_from_text(std::string(kHeader) + "8,32,4,1024,16,24,2048,2,2,2,219.732754\r\n", "t");
  ASSERT_TRUE(rows) << rows.error().message();
  ASSERT_EQ(rows->size(), 1);
  EXPECT_EQ((*rows)[0].gpus, 8);
  EXPECT_EQ((*rows)[0].micro_batch, 4);
  EXPECT_EQ((*rows)[0].sequence, 2048);
  EXPECT_EQ((*rows)[0].pipeline, 2);
  EXPECT_EQ((*rows)[0].iteration, Nanoseconds(219732754));
}

TEST(MegatronRows, NamesWhatIsWrong) {
  const auto missing = megatron_rows_from_text("# GPUs,global batch\n8,32\n", "t");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().what.find("micro batch"), std::string::npos);
  const auto zero = megatron_rows_from_text(std::string(kHeader) + "8,32,0,1024,16,24,2048,2,2,2,219.7\n", "t");
  ASSERT_FALSE(zero);
  EXPECT_NE(zero.error().where.find("line 2"), std::string::npos);
  EXPECT_FALSE(megatron_rows_from_text(std::string(kHeader) + "8,32,4,1024,16,24,2048,2,2,2,-1\n", "t"));
  EXPECT_FALSE(megatron_rows_from_text(kHeader, "t"));
}

TEST(MegatronRows, ReadsAllReduceTablesOfAFolder) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "vtrain_tables";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "AR_GPU4_1M_1024M_LUT")
      << "size(B),count,type,time(ns),busbw(GB/s)\n1048576,262144,float,44210,"
         "23.72\n2097152,524288,float,53430,39.25\n";
  const auto rows = read_all_reduce_tables(folder.string());
  ASSERT_TRUE(rows) << rows.error().message();
  ASSERT_EQ(rows->size(), 2);
  EXPECT_EQ((*rows)[1].ranks, 4);
  EXPECT_EQ((*rows)[1].bytes, Bytes(2097152));
  EXPECT_EQ((*rows)[1].time, Nanoseconds(53430));
  EXPECT_FALSE(read_all_reduce_tables(testing::TempDir() + "/nothing_here"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forerun
