#include "zoo/checkpoints.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace forerun::zoo {
namespace {

namespace fs = std::filesystem;

// A data folder with a list of its own.
class Checkpoints : public testing::Test {
 protected:
  Checkpoints() : folder_(fs::temp_directory_path() / (std::to_string(getpid()) + "_checkpoints")) {
    fs::create_directories(folder_ / "devices");
    fs::create_directories(folder_ / "zoo");
    setenv("FORERUN_DATA", folder_.c_str(), 1);
  }
  ~Checkpoints() override {
    unsetenv("FORERUN_DATA");
    fs::remove_all(folder_);
  }
  void write(const std::string& text) const { std::ofstream(folder_ / "zoo" / "checkpoints.json") << text; }

  fs::path folder_;
};

TEST_F(Checkpoints, AreReadFromTheLinesOfTheFile) {
  write(
      "{\"format\": \"checkpoints/1\", \"checkpoints\": [\n"
      "  {\"names\": [\"some/Model-1\"], \"parameters\": 7, \"config\": {\"model_type\": \"llama\"}},\n"
      "  {\"names\": [\"some/Model-10\"], \"parameters\": 8, \"config\": {\"model_type\": \"llama\"}}\n]}\n");
  const auto all = checkpoints();
  ASSERT_TRUE(all.ok()) << all.error().message();
  EXPECT_EQ(all->size(), 2U);
  const auto found = find_checkpoint("some/model_1");
  ASSERT_TRUE(found.ok()) << found.error().message();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->names.front(), "some/Model-1");
  EXPECT_FALSE(find_checkpoint("some/model")->has_value());
}

TEST_F(Checkpoints, AListInAnotherFormIsRefused) {
  EXPECT_FALSE(checkpoints().ok()) << "there is no file";
  for (const char* text :
       {"", "[]", "{\"format\": \"checkpoints/2\"}",
        // One that a formatter wrote anew: not a line for each.
        "{\"format\": \"checkpoints/1\", \"checkpoints\": [\n{\n\"names\": [\"a/b\"], \"parameters\": 1}]}",
        "{\"format\": \"checkpoints/1\", \"checkpoints\": [\n{\"names\": [\"a/b\"], \"parameters\"\n"}) {
    write(text);
    const auto all = checkpoints();
    ASSERT_FALSE(all.ok()) << text;
    EXPECT_NE(all.error().message().find("checkpoints.json"), std::string::npos) << all.error().message();
  }
}

}  // namespace
}  // namespace forerun::zoo
