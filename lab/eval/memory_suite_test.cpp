#include "lab/eval/memory_suite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/data_dir.h"
#include "base/line_reader.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

TEST(MemorySuite, JudgesEachConfigurationOnce) {
  const auto data = data_dir();
  ASSERT_TRUE(data.ok());
  const fs::path source = *data / "h200" / "runs-1.jsonl.zst";
  ASSERT_TRUE(fs::exists(source)) << source;
  const fs::path file = fs::path(testing::TempDir()) / "memory_suite_test.jsonl";
  constexpr size_t kJudged = 6;
  {
    auto lines = LineReader::open(source.string());
    ASSERT_TRUE(lines.ok()) << lines.error().message();
    std::ofstream out(file);
    for (size_t i = 0; i < kJudged; ++i) {
      const auto line = lines->next();
      ASSERT_TRUE(line.ok() && *line);
      out << **line << '\n' << **line << '\n';  // as if each had been measured twice
    }
  }
  const auto accuracy = evaluate_memory(
      {.records = {file.string()}, .problem = [](const DataProblem&) { ADD_FAILURE() << "a record is broken"; }});
  fs::remove(file);
  ASSERT_TRUE(accuracy.ok()) << accuracy.error().message();
  ASSERT_GE(accuracy->predictors.size(), 3U);
  const MemoryPredictor& ours = accuracy->predictors[0];
  ASSERT_EQ(ours.cases.size(), kJudged);
  double worst_rule = 0;
  for (size_t i = 0; i < kJudged; ++i) {
    const MemoryCase& judged = ours.cases[i];
    EXPECT_TRUE(judged.did_fit && judged.said_to_fit) << judged.id;
    EXPECT_NEAR(judged.allocated / judged.measured_allocated, 1, 0.1) << judged.id;
    const MemoryCase& rule = accuracy->predictors[1].cases[i];
    EXPECT_EQ(rule.id, judged.id);
    worst_rule = std::max(worst_rule, std::abs(rule.allocated / rule.measured_allocated - 1));
  }
  EXPECT_GT(worst_rule, 0.1);  // what counts parameters alone is not as near
}

TEST(MemorySuite, WithoutRunsSaysSo) {
  const fs::path file = fs::path(testing::TempDir()) / "memory_suite_empty.jsonl";
  std::ofstream(file) << "";
  const auto accuracy = evaluate_memory({.records = {file.string()}});
  fs::remove(file);
  ASSERT_FALSE(accuracy.ok());
  EXPECT_NE(accuracy.error().message().find("no measured run"), std::string::npos);
}

}  // namespace
}  // namespace forerun
