// The suite compile on the committed data: figures stay within bands, and what cannot be judged is named.
#include "lab/eval/compile_suite.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace forerun {
namespace {

TEST(CompileSuite, StaysWithinItsBands) {
  const auto accuracy = evaluate_compile({});
  ASSERT_TRUE(accuracy.ok()) << accuracy.error().message();
  const CompileSummary aside = summary_of(*accuracy, CompileMode::standard, true),
                       seen = summary_of(*accuracy, CompileMode::standard, false);
  EXPECT_EQ(seen.cases, 115);
  EXPECT_EQ(aside.cases, 22);
  EXPECT_LT(seen.gpu, 0.06);
  EXPECT_LT(aside.gpu, 0.08);
  EXPECT_LT(seen.gpu_bound, 0.065);
  EXPECT_LT(aside.gpu_bound, 0.08);
  EXPECT_LT(seen.host_bound, 0.19);  // the hosts of the last ninety pairs were noisy
  EXPECT_LT(seen.kernels, 0.065);
  EXPECT_LT(aside.kernels, 0.08);
  EXPECT_LT(seen.allocated, 0.02);
  EXPECT_LT(aside.allocated, 0.01);
  EXPECT_LT(seen.reserved, 0.06);
  EXPECT_LT(aside.reserved_kept_cache, 0.05);
  EXPECT_LT(seen.gain, 0.11);
  EXPECT_LT(aside.gain, 0.12);
  EXPECT_LT(seen.eager_gpu, 0.05);  // the captures are those of what was measured
  EXPECT_LT(seen.eager_allocated, 0.01);
  const CompileSummary graphs = summary_of(*accuracy, CompileMode::reduce_overhead, false);
  EXPECT_EQ(graphs.cases, 29);
  EXPECT_LT(graphs.gpu, 0.07);
  EXPECT_LT(graphs.gpu_bound, 0.09);
  EXPECT_LT(graphs.reserved_kept_cache, 0.06);
  EXPECT_LT(graphs.gain, 0.07);
  const CompileSummary captured = summary_of(*accuracy, CompileMode::reduce_overhead, true);
  EXPECT_EQ(captured.cases, 13);
  EXPECT_LT(captured.gain, 0.05);
  EXPECT_EQ(captured.host_read_cases, 11);
  EXPECT_LT(captured.host_read_bound, 0.14);
  const CompileSummary tuned = summary_of(*accuracy, CompileMode::max_autotune, false);
  EXPECT_EQ(tuned.cases, 4);
  EXPECT_LT(tuned.gpu, 0.07);
  EXPECT_TRUE(accuracy->problems.empty());  // graphs that break are judged too
  const std::string text = to_text(*accuracy);
  EXPECT_NE(text.find("default, kept aside"), std::string::npos);
  EXPECT_NE(text.find("reduce-overhead, mean error"), std::string::npos);
  EXPECT_NE(to_json(*accuracy).find("\"schema\":\"forerun.eval.compile/1\""), std::string::npos);
}

TEST(CompileSuite, AFolderWithoutItsFilesIsNamed) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "compile_suite";
  std::filesystem::create_directories(folder);
  EXPECT_FALSE(evaluate_compile({.folder = folder.string()}).ok());
  std::ofstream(folder / "measured.jsonl") << "{\"name\": 3}\n";
  EXPECT_FALSE(evaluate_compile({.folder = folder.string()}).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace forerun
