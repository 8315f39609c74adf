#include "lab/papers/published_runs.h"

#include <gtest/gtest.h>

#include <tuple>

namespace forerun::scale {
namespace {

TEST(PublishedRuns, FoundryTable) {
  const auto models = mpt_models();
  ASSERT_TRUE(models) << models.error().message();
  const auto runs = foundry_runs_from_text(
      "Model,SeqLen (T),# GPUs,GPU,MicroBatchSize,GlobalBatchSize,Throughput (T/s),Precision,Sharding Strategy,"
      "Activation Checkpointing,section\n"
      "7b,2048,16,a100_40gb,8,128,50000,amp_bf16,FULL_SHARD,True,\"A, B\"\n"
      "7b,2048,16,h100_80gb,8,128,50000,amp_fp8,FULL_SHARD,True,x\n",
      "t", *models);
  ASSERT_TRUE(runs) << runs.error().message();
  ASSERT_EQ(runs->runs.size(), 1);
  EXPECT_EQ(runs->passed_over, 1);
  EXPECT_EQ(runs->runs[0].gpu, "a100-40gb");
  EXPECT_EQ(runs->runs[0].zero, 3);
  EXPECT_EQ(transformer_of(runs->runs[0], *models)->hidden, 4096);
  EXPECT_FALSE(foundry_runs_from_text("Model,GPU\n", "t", *models));
}

TEST(PublishedRuns, TablesOfPapersAreRead) {
  const auto megatron = megatron_table();
  ASSERT_TRUE(megatron) << megatron.error().message();
  ASSERT_EQ(megatron->runs.size(), 10U);
  const MegatronRun& largest = megatron->runs.back();
  EXPECT_EQ(largest.name, "1008 B");
  EXPECT_EQ(largest.gpus, 3072);
  EXPECT_EQ(largest.teraflops, 163);
  // The paper prints the product of both, 502 petaFLOP/s, in a column of its own.
  EXPECT_NEAR(largest.teraflops * static_cast<double>(largest.gpus) / 1e3, 502, 1.5);
  EXPECT_GT(step_seconds(largest, *megatron), 60);
  EXPECT_EQ(transformer_of(largest, *megatron).vocab, 51200);
  const auto models = mpt_models();
  ASSERT_TRUE(models) << models.error().message();
  ASSERT_NE(models->find("70b"), nullptr);
  EXPECT_EQ(models->find("70b")->layers, 80);
  EXPECT_EQ(models->find("71b"), nullptr);
  const auto error = vtrain_error();
  ASSERT_TRUE(error) << error.error().message();
  EXPECT_EQ(*error, 0.0837);
}

std::string first_run(const std::string& change_from, const std::string& to) {
  std::string text =
      R"({"schema": "forerun.papers.megatron/1", "paper": "p", "gpu": "a100-80gb", "network": "8xhdr",
      "sequence": 2048, "vocabulary": 51200, "runs": [{"name": "3.6 B", "heads": 32, "hidden": 3072, "layers": 30,
      "tensor": 2, "pipeline": 1, "gpus": 64, "batch": 512, "micro_batch": 16, "chunks": 1, "overlap": true,
      "teraflops_per_gpu": 138}]})";
  const size_t at = text.find(change_from);
  EXPECT_NE(at, std::string::npos) << change_from;
  return text.replace(at, change_from.size(), to);
}

TEST(PublishedRuns, BrokenTablesAreRefused) {
  const auto table = [](const std::string& text) { return megatron_table(*JsonObject::parse(text, "t.json")); };
  EXPECT_TRUE(table(first_run("3.6 B", "3.6 B")));
  for (const auto& [from, to, says] : {std::tuple("megatron/1", "megatron/2", "schema"),
                                       {"\"gpus\"", "\"cards\"", "gpus"},
                                       {"\"gpus\": 64", "\"gpus\": 63", "multiple of tensor x pipeline"},
                                       {"\"micro_batch\": 16", "\"micro_batch\": 15", "multiple of replicas"},
                                       {"138", "\"138\"", "teraflops_per_gpu"},
                                       {"3072", "3072.5", "whole number"},
                                       {"30,", "-30,", "layers"}}) {
    const auto broken = table(first_run(from, to));
    ASSERT_FALSE(broken) << to;
    EXPECT_NE(broken.error().message().find(says), std::string::npos) << broken.error().message();
    EXPECT_NE(broken.error().message().find("t.json"), std::string::npos) << broken.error().message();
  }
  const auto per_cent = vtrain_error(*JsonObject::parse(
      R"({"schema": "forerun.papers.vtrain/1", "paper": "p", "one_machine_error": 8.37})", "t.json"));
  ASSERT_FALSE(per_cent);
  EXPECT_NE(per_cent.error().message().find("share of 1"), std::string::npos);
  const auto twice = mpt_models(*JsonObject::parse(
      R"({"schema": "forerun.papers.mpt/1", "source": "s", "vocabulary": 9, "models": [
      {"name": "a", "hidden": 1, "layers": 1, "heads": 1}, {"name": "a", "hidden": 1, "layers": 1, "heads": 1}]})",
      "t.json"));
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message().find("twice"), std::string::npos);
}

}  // namespace
}  // namespace forerun::scale
