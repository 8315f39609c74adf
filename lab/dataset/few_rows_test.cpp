#include "lab/dataset/few_rows.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace forerun::learn {
namespace {

FewRow made_up_row(const std::string& start, int64_t few) {
  return {
      .predictor = "ets",
      .start = start,
      .gpu = "NVIDIA H200",
      .learned_from = start == kScratchStart ? std::vector<std::string>() : std::vector<std::string>{"2080Ti", "T4"},
      .few = few,
      .draws = 3,
      .test = 234,
      .errors = {{.epochs = 1, .mre = 0.21, .least = 0.2, .most = 0.225}},
      .seconds = 12.5,
      .settings = {{"target", "ratio"}},
      .rate = 1e-3,
      .batch = 128,
      .device = "a machine, cpu",
      .date = "2026-11-17",
      .data = "made up"};
}

class FewRows : public testing::Test {
 protected:
  FewRows() { std::filesystem::remove(path_); }
  std::string path_ = testing::TempDir() + "/few_rows.jsonl";
};

TEST_F(FewRows, AreReadAsTheyWereKept) {
  ASSERT_TRUE(read_few_rows(path_).ok());
  EXPECT_TRUE(read_few_rows(path_)->empty());
  const std::vector<FewRow> rows = {made_up_row(kMetaStart, 5), made_up_row(kScratchStart, 5)};
  ASSERT_TRUE(keep_few_rows(path_, rows).ok());
  const auto read = read_few_rows(path_);
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->size(), 2U);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(to_json_line(read->at(i)), to_json_line(rows[i]));
}

TEST_F(FewRows, OfTheSameQuestionAreReplaced) {
  FewRow row = made_up_row(kMetaStart, 5);
  ASSERT_TRUE(keep_few_rows(path_, {row, made_up_row(kMetaStart, 10)}).ok());
  row.errors[0].mre = 0.5;
  ASSERT_TRUE(keep_few_rows(path_, {row}).ok());
  const auto read = read_few_rows(path_);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->at(0).errors[0].mre, 0.5);
  EXPECT_EQ(read->at(1).few, 10);
}

TEST_F(FewRows, ABrokenLineIsNamed) {
  std::ofstream(path_) << to_json_line(made_up_row(kMetaStart, 5)) << "\n{\"study\": \"parts\"}\n";
  const auto read = read_few_rows(path_);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message().find("few_rows.jsonl:2"), std::string::npos) << read.error().message();
}

// What starts from nothing stands beside every other start of its GPU.
TEST_F(FewRows, AreShownByGpuAndNumberOfTraces) {
  FewRow other = made_up_row(kMetaStart, 5);
  other.learned_from = {"2080Ti"};
  const std::string text =
      to_text({made_up_row(kMetaStart, 10), made_up_row(kMetaStart, 5), other, made_up_row(kScratchStart, 5)});
  size_t scratch = 0;
  for (size_t at = 0; (at = text.find("scratch", at)) != std::string::npos; ++at) ++scratch;
  EXPECT_EQ(scratch, 2U) << text;
  EXPECT_NE(text.find("21.0 % (20.0 to 22.5)"), std::string::npos) << text;
  EXPECT_NE(text.find("starts have seen 2080Ti, T4"), std::string::npos) << text;
}

}  // namespace
}  // namespace forerun::learn
