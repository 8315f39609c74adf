// What a suite answers with, once as text and as a page.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/small_file.h"
#include "lab/cli/lab_verbs.h"

namespace forerun::cli {
namespace {

TEST(Eval, WritesItsAnswerAsAPage) {
  const std::string page = testing::TempDir() + "/eval_page.html";
  std::filesystem::remove(page);
  const auto run = parse_eval({"--suite", "megatron", "--html", page});
  ASSERT_TRUE(run.ok()) << run.error().message();
  testing::internal::CaptureStdout();
  EXPECT_EQ((*run)(), 0);
  EXPECT_FALSE(testing::internal::GetCapturedStdout().empty()) << "it prints as ever";
  const auto text = read_small_file(page, {size_t{4} << 20, ""});
  ASSERT_TRUE(text.ok()) << text.error().message();
  EXPECT_NE(text->find("forerun eval --suite megatron\""), std::string::npos) << "the command, without --html";
  EXPECT_NE(text->find("forerun.eval.megatron/1"), std::string::npos);
  const auto nowhere = parse_eval({"--suite", "megatron", "--html", "/no/such/folder/page.html"});
  ASSERT_TRUE(nowhere.ok());
  testing::internal::CaptureStdout();
  EXPECT_NE((*nowhere)(), 0);
  testing::internal::GetCapturedStdout();
}

}  // namespace
}  // namespace forerun::cli
