#include "guard/guard_file.h"

#include <gtest/gtest.h>

#include "base/output_file.h"

namespace forerun::guard {
namespace {

std::string refusal(const std::string& text) {
  const auto guards = parse_guards(text, "forerun.toml");
  EXPECT_FALSE(guards.ok()) << text;
  return guards.ok() ? "" : guards.error().message();
}

TEST(GuardFile, DefaultsAreTheWordsOfEveryGuard) {
  const auto guards = parse_guards(
      "[defaults]\ngpu = \"a100\"\nfits = true\n[guard.b]\nmodel = \"resnet50\"\nset = {image = 384}\n"
      "[guard.a]\nmodel = \"resnet18\"\ngpu = \"l4\"\nbatch = 8\n",
      "forerun.toml");
  ASSERT_TRUE(guards.ok()) << guards.error().message();
  ASSERT_EQ(guards->size(), 2U);
  EXPECT_EQ((*guards)[0].asked, R"({"batch":8,"gpu":"l4","model":"resnet18"})") << "rules are not asked";
  EXPECT_EQ((*guards)[0].words, R"({"batch":8,"fits":true,"gpu":"l4","model":"resnet18"})");
  EXPECT_EQ((*guards)[1].asked, R"({"gpu":"a100","model":"resnet50","set":{"image":384}})");
  EXPECT_EQ((*guards)[1].place, "forerun.toml, line 4, guard b");
}

TEST(GuardFile, SeveralGpusMakeSeveralGuards) {
  const auto guards = parse_guards("[guard.a]\nmodel = \"resnet18\"\ngpu = [\"l4\", \"a100\"]\n", "forerun.toml");
  ASSERT_TRUE(guards.ok());
  ASSERT_EQ(guards->size(), 2U);
  EXPECT_EQ((*guards)[0].name, "a on l4");
  EXPECT_EQ((*guards)[1].asked, R"({"gpu":"a100","model":"resnet18"})");
  EXPECT_NE(refusal("[guard.a]\ngpu = [1]\n").find("line 2"), std::string::npos);
  EXPECT_NE(refusal("[guard.a]\ngpu = []\n").find("empty"), std::string::npos);
  EXPECT_NE(refusal("[guard.a]\ngpu = [\"l4\"]\n[guard.\"a on l4\"]\n").find("two guards"), std::string::npos);
}

TEST(GuardFile, FilesLieBesideIt) {
  const std::string folder = testing::TempDir();
  ASSERT_TRUE(write_whole_file(folder + "/guard_file_test.onnx", "x").ok());
  const auto guards = parse_guards(
      "[guard.a]\nmodel = \"guard_file_test.onnx\"\ndevice_files = [\"gpu.json\"]\n[guard.b]\nmodel = \"resnet50\"\n",
      folder + "/forerun.toml");
  ASSERT_TRUE(guards.ok());
  EXPECT_EQ((*guards)[0].asked, R"({"device_files":["gpu.json"],"model":"guard_file_test.onnx"})");
  EXPECT_NE((*guards)[0].words.find(folder), std::string::npos) << (*guards)[0].words;
  EXPECT_EQ((*guards)[1].words, R"({"model":"resnet50"})") << "a name is no file";
}

TEST(GuardFile, SaysWhatIsWrong) {
  EXPECT_NE(refusal("").find("no guards"), std::string::npos);
  EXPECT_NE(refusal("[guards.a]\nmodel = \"x\"\n").find("did you mean guard"), std::string::npos);
  EXPECT_NE(refusal("[guard.a\n").find("line 1"), std::string::npos);
  EXPECT_NE(refusal("[guard]\na = 3\n").find("write [guard.a]"), std::string::npos);
  EXPECT_NE(refusal("[guard.a]\nbatch = 1979-05-27\n").find("a date"), std::string::npos);
  EXPECT_NE(refusal("guard = 3\n").find("no table"), std::string::npos);
  EXPECT_NE(refusal("[guard.a]\nx = [[[[[[[[[[[[1]]]]]]]]]]]]\n").find("without end"), std::string::npos);
}

}  // namespace
}  // namespace forerun::guard
