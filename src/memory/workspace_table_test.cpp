#include "memory/workspace_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/data_dir.h"

namespace forerun {
namespace {

Result<WorkspaceTable> table(const std::string& recurrent) {
  const auto path =
      std::filesystem::temp_directory_path() / ("workspace_table_test_" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << R"({"format": "workspaces/2", "recurrent": [)" << recurrent << "]}";
  Result<WorkspaceTable> result = WorkspaceTable::load(path);
  std::filesystem::remove(path);
  return result;
}

const RecurrentShape kLayer{.batch = 8, .steps = 10, .input = 64, .hidden = 64};

TEST(WorkspaceTable, FollowsTheTree) {
  const std::string leaves = R"(, {"is": "plain"}, {"is": "persistent"})";
  const auto below = table(R"({"feature": "hidden", "at": 64, "below": 1, "above": 2})" + leaves);
  const auto above = table(R"({"feature": "hidden", "at": 63.5, "below": 1, "above": 2})" + leaves);
  ASSERT_TRUE(below.ok() && above.ok());
  EXPECT_LT(below->recurrent(kLayer), above->recurrent(kLayer));
  EXPECT_EQ(below->recurrent(kLayer), WorkspaceTable().recurrent(kLayer));
}

TEST(WorkspaceTable, NamesWhatIsWrong) {
  EXPECT_FALSE(table(R"({"is": "guess"})").ok());
  EXPECT_FALSE(table(R"({"feature": "colour", "at": 1, "below": 1, "above": 1}, {"is": "plain"})").ok());
  EXPECT_FALSE(table(R"({"feature": "hidden", "at": 1, "below": 1, "above": 2}, {"is": "plain"})").ok());
  EXPECT_FALSE(table(R"({"is": "plain"}, {"feature": "hidden", "at": 1, "below": 1, "above": 1})").ok());
  EXPECT_FALSE(WorkspaceTable::load("/nowhere.json").ok());
}

TEST(WorkspaceTable, IsEmptyWithoutAFile) {
  EXPECT_FALSE(WorkspaceTable().convolution(ConvolutionPass::convolution, {}).has_value());
  EXPECT_GT(WorkspaceTable().recurrent(kLayer), 8 << 20);
}

// Workspaces that cuDNN 9.19 took on an H200.
TEST(WorkspaceTable, KnowsRecurrentLayers) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok());
  const auto measured = WorkspaceTable::load(*folder / "memory" / "workspaces.json");
  ASSERT_TRUE(measured.ok()) << measured.error().message();
  const auto expect_near = [&](const RecurrentShape& shape, double bytes) {
    EXPECT_NEAR(static_cast<double>(measured->recurrent(shape)) / bytes, 1, 0.01);
  };
  expect_near({.kind = 1, .batch = 110, .steps = 100, .input = 256, .hidden = 256, .weight_bytes = 526336}, 178549888);
  expect_near({.kind = 2, .batch = 25, .steps = 64, .input = 896, .hidden = 896, .weight_bytes = 25718784}, 69471200);
  expect_near(
      {.kind = 3, .element = 2, .batch = 64, .steps = 70, .input = 1280, .hidden = 1280, .weight_bytes = 19676160},
      97682176);
}

// A weight gradient of MobileNetV3 that takes one product a picture, as traced.
TEST(WorkspaceTable, KnowsConvolutions) {
  const auto folder = data_dir();
  ASSERT_TRUE(folder.ok());
  const auto measured = WorkspaceTable::load(*folder / "memory" / "workspaces.json");
  ASSERT_TRUE(measured.ok()) << measured.error().message();
  ConvolutionShape shape{.batch = 178, .channels = 344, .filters = 112, .image = 49, .out_image = 49, .in_width = 7};
  EXPECT_NEAR(static_cast<double>(measured->convolution(ConvolutionPass::weight_gradient, shape).value_or(0)), 27431936,
              0.01 * 27431936);
}

}  // namespace
}  // namespace forerun
