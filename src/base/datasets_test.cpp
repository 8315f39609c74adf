#include "base/datasets.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace forerun {
namespace {

TEST(Datasets, LieBelowOneFolder) {
  const std::filesystem::path folder = testing::TempDir() + "datasets_test";
  std::filesystem::create_directories(folder / "hkbu");
  std::ofstream(folder / "hkbu" / "throughput.csv") << "x";
  const auto found = dataset("hkbu/throughput.csv", folder.string());
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, folder / "hkbu" / "throughput.csv");
  const auto absent = dataset("ets", folder.string());
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().message().find((folder / "ets").string()), std::string::npos);
}

TEST(Datasets, WithoutAFolderTheErrorNamesTheVariable) {
  const auto none = dataset("ets", "");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message().find("FORERUN_DATASETS"), std::string::npos);
}

}  // namespace
}  // namespace forerun
