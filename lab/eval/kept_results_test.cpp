#include "lab/eval/kept_results.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace forerun {
namespace {

std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + "/kept_results.jsonl";
  std::ofstream(path) << text;
  return path;
}

constexpr const char* kLine =
    R"({"label": "ets-gru", "predictor": "ets", "validation_error": 0.09, "device": "cuda:0", "test": [{"quantity": )"
    R"("iteration_ms", "all": {"count": 176, "mre": 0.11, "median": 0.08, "p90": 0.2, "bias": -0.01, "rmse": 9.5}}]})";

TEST(KeptResults, AreReadBack) {
  const auto rows = read_kept_results(written(std::string(kLine) + "\n\n" + kLine + "\n"), "");
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  ASSERT_EQ(rows->size(), 2U);
  const SuiteRow& row = rows->front();
  EXPECT_EQ(row.label, "ets-gru");
  EXPECT_DOUBLE_EQ(row.training.validation_error, 0.09);
  ASSERT_EQ(row.evaluations.size(), 1U);
  EXPECT_EQ(row.evaluations[0].all.count, 176);
  EXPECT_DOUBLE_EQ(row.evaluations[0].all.mre, 0.11);
}

TEST(KeptResults, HoldErrorsByBoundAndTheirDate) {
  const auto rows = read_kept_results(
      written(
          R"({"label": "forerun, iterations alone", "predictor": "forerun", "date": "2026-11-17", "weights": "ab", )"
          R"("learned_from": "iterations", "test": [{"quantity": "iteration_ms", "all": {"count": 2, "mre": 0.11, )"
          R"("median": 0.08, "p90": 0.2, "bias": 0, "rmse": 9.5}, "by_bound": {"gpu": {"count": 1, "mre": 0.05, )"
          R"("median": 0.05, "p90": 0.05, "bias": 0, "rmse": 1}}}], "ood": []})"),
      "");
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  const SuiteRow& row = rows->at(0);
  EXPECT_EQ(row.kept_date, "2026-11-17");
  EXPECT_EQ(row.weights, "ab");
  EXPECT_EQ(row.learned_from, "iterations");
  ASSERT_EQ(row.evaluations.at(0).by_bound.size(), 1U);
  EXPECT_DOUBLE_EQ(row.evaluations[0].by_bound[0].errors.mre, 0.05);
}

TEST(KeptResults, OfARandomSplitAreRefused) {
  std::string line = kLine;
  line.insert(1, R"("split": "random:1", )");
  EXPECT_FALSE(read_kept_results(written(line), "").ok());
  line = kLine;
  line.insert(1, R"("split": "families", )");
  EXPECT_TRUE(read_kept_results(written(line), "").ok());
}

TEST(KeptResults, OfOtherDataAreStale) {
  std::string told = kLine;
  told.insert(1, R"("data": "1102 records, fingerprint a", )");
  const std::string path = written(told + "\n" + kLine);
  const auto stale = [&](const char* now) {
    const auto rows = read_kept_results(path, now);
    return std::make_pair(rows->at(0).stale, rows->at(1).stale);
  };
  EXPECT_EQ(stale("1102 records, fingerprint a"), std::make_pair(false, true));
  EXPECT_EQ(stale("1102 records, fingerprint b"), std::make_pair(true, true));
}

TEST(KeptResults, NoFileMeansNone) {
  const auto rows = read_kept_results(testing::TempDir() + "/there_is_no_such_file.jsonl", "");
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(rows->empty());
}

TEST(KeptResults, ABrokenLineIsNamed) {
  for (const char* broken : {"{", R"({"label": "a"})", "[]"}) {
    const auto rows = read_kept_results(written(std::string(kLine) + "\n" + broken), "");
    ASSERT_FALSE(rows.ok()) << broken;
    EXPECT_NE(rows.error().message().find("jsonl:2"), std::string::npos);
  }
}

}  // namespace
}  // namespace forerun
