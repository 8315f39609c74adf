#include "scale/transformer_cost.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scale/fit_efficiency.h"
#include "scale/least_squares.h"
#include "scale/published_runs.h"
#include "scale/test_cluster.h"
#include "zoo/zoo.h"

namespace forerun::scale {
namespace {

TEST(Transformer, CountsParametersAsTheZooDoes) {
  for (const char* name : {"gpt2_small", "gpt2_xl", "llama2_7b", "llama3_8b"}) {
    const auto model = zoo::build(name, {{"batch", "1"}});
    ASSERT_TRUE(model);
    const auto shape = transformer_of(*model);
    ASSERT_TRUE(shape) << name;
    EXPECT_EQ(shape->parameters(), model->forward.parameter_count()) << name;
  }
  EXPECT_FALSE(transformer_of(*zoo::build("resnet18", {{"batch", "1"}})));
}

TEST(TransformerCost, SharedLayersAreFasterButNotByAsMuch) {
  const TestCase test(8);
  const auto alone = test.costs()(8, 1);
  const auto shared = test.costs()(8, 4);
  ASSERT_TRUE(alone && shared);
  const Block& one = alone->blocks[1];
  const Block& four = shared->blocks[1];
  EXPECT_LT(four.forward, one.forward);
  EXPECT_GT(four.forward * 4, one.forward);
  EXPECT_EQ(four.parameters, one.parameters / 4);
  EXPECT_LT(four.saved, one.saved);
  EXPECT_EQ(one.forward_exchange, Nanoseconds());
  EXPECT_GT(four.forward_exchange, Nanoseconds());
}

TEST(TransformerCost, AnOddVocabularyIsSlow) {
  TestCase test(1);
  test.model.vocab = 50304;
  const Nanoseconds even = test.costs()(4, 1)->blocks.back().forward;
  test.model.vocab = 50257;
  EXPECT_GT(test.costs()(4, 1)->blocks.back().forward, even);
  EXPECT_EQ(padded_vocab(50257, 1), 50257);
  EXPECT_EQ(padded_vocab(50257, 8) % (128 * 8), 0);
}

TEST(Efficiency, WritesWhatItReads) {
  Efficiency e;
  e.source = "a test";
  e.gemm = 0.71;
  e.fused_attention = false;
  e.within = {30, 2, 0.7};
  e.between = {30, 0, 0.85};
  e.shapes = {{1024, 2048, 2, 1.1, 0.9}};
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "efficiency.json";
  std::ofstream(file) << to_json(e);
  const auto read = read_efficiency(file);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(to_json(*read), to_json(e));
  std::ofstream(file) << "{\"format\": \"other\"}";
  EXPECT_FALSE(read_efficiency(file));
  std::filesystem::remove(file);
}

TEST(Efficiency, CorrectionsFadeWithinAnOctave) {
  Efficiency e;
  e.shapes = {{1024, 2048, 2, 1.2, 0.8}};
  EXPECT_NEAR(factors_at(e, 1024, 2048, 2).layer, 1.2, 0.01);
  EXPECT_NEAR(factors_at(e, 1024, 2048, 2).ends, 0.8, 0.01);
  EXPECT_NEAR(factors_at(e, 4096, 8192, 8).layer, 1, 0.001);
}

TEST(LeastSquares, FindsTheMinimum) {
  const Residuals rosenbrock = [](const std::vector<double>& x) {
    return std::vector<double>{10 * (x[1] - x[0] * x[0]), 1 - x[0]};
  };
  const Minimum minimum = least_squares(rosenbrock, {-1.2, 1}, 500);
  EXPECT_NEAR(minimum.unknowns[0], 1, 1e-2);
  EXPECT_NEAR(minimum.unknowns[1], 1, 2e-2);
  EXPECT_TRUE(solve_symmetric({1, 2, 2, 1}, {1, 1}).empty());  // not positive definite
}

// Rows made by the formulas with other constants are explained again.
TEST(FitEfficiency, RecoversWhatMadeTheRows) {
  const GpuCluster cluster = test_cluster(8);
  Efficiency truth;
  truth.fused_attention = false;
  truth.host_layer_us = 2000;
  truth.score_bytes = 60;
  std::vector<MegatronRow> rows;
  for (const int64_t hidden : {1024, 2048}) {
    for (const int64_t micro_batch : {1, 4, 8}) {
      for (const int64_t tensor : {1, 2}) {
        MegatronRow row{2, 32, micro_batch, hidden, 16, 12, 1024, tensor, 2 / tensor, 1, {}};
        row.iteration = predicted_time(row, cluster, truth);
        rows.push_back(row);
      }
    }
  }
  Efficiency first;
  first.fused_attention = false;
  const FitReport report = fit_efficiency(rows, cluster, first);
  EXPECT_LT(report.error, 0.01);
  EXPECT_LT(report.formulas_error, 0.05);
  // Another shape, which nothing was fitted to.
  const MegatronRow other{8, 32, 2, 4096, 32, 24, 2048, 4, 2, 1, {}};
  const double ratio = static_cast<double>(predicted_time(other, cluster, report.efficiency).value) /
                       static_cast<double>(predicted_time(other, cluster, truth).value);
  EXPECT_NEAR(ratio, 1, 0.1);
}

TEST(FitEfficiency, LinksFromAllReduces) {
  std::vector<AllReduceRow> rows;
  for (const int64_t n : {2, 4, 8}) {
    for (int64_t mib = 1; mib <= 64; ++mib) {
      const double bytes = static_cast<double>(mib << 20);
      const double us = 30 + 2 * static_cast<double>(n - 1) * 2.5 +
                        2 * static_cast<double>(n - 1) / static_cast<double>(n) * bytes / 210e9 * 1e6;
      rows.push_back({n, Bytes(mib << 20), nanoseconds_from_us(us)});
    }
  }
  const LinkEfficiency link = fit_link(rows, 300e9);
  EXPECT_NEAR(link.call_us, 30, 0.1);
  EXPECT_NEAR(link.step_us, 2.5, 0.05);
  EXPECT_NEAR(link.share, 0.7, 0.001);
}

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
