#include "base/data_dir.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace forerun {
namespace {

namespace fs = std::filesystem;

class DataDirTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("forerun_data_dir_test_" + std::to_string(getpid()));
    fs::create_directories(root_ / "install/data/devices");
    fs::create_directories(root_ / "install/bin/deep");
    fs::create_directories(root_ / "source/data/devices");
    fs::create_directories(root_ / "empty");
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path root_;
};

TEST_F(DataDirTest, EnvironmentComesFirst) {
  const auto found = data_dir({(root_ / "source/data").string(), root_ / "install/bin/forerun", {}});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, root_ / "source/data");
}

TEST_F(DataDirTest, WrongEnvironmentIsAnError) {
  const auto found = data_dir({(root_ / "empty").string(), root_ / "install/bin/forerun", root_ / "source/data"});
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message().find("FORERUN_DATA"), std::string::npos);
}

TEST_F(DataDirTest, WalksUpFromTheExecutable) {
  const auto found = data_dir({"", root_ / "install/bin/deep/forerun", root_ / "source/data"});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, root_ / "install/data");
}

TEST_F(DataDirTest, LooksBesideALibraryFirst) {
  fs::create_directories(root_ / "site/forerun/data/devices");
  const auto found =
      data_dir({"", root_ / "install/bin/python3", root_ / "source/data", root_ / "site/forerun/_native.so"});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, root_ / "site/forerun/data");
}

TEST_F(DataDirTest, FallsBackOnTheSourceTree) {
  const auto found = data_dir({"", root_ / "empty/forerun", root_ / "source/data"});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, root_ / "source/data");
  EXPECT_FALSE(data_dir({"", root_ / "empty/forerun", root_ / "empty"}).ok());
}

}  // namespace
}  // namespace forerun
