#include "memory/workspace_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/data_dir.h"

namespace forerun {
namespace {

Result<WorkspaceTable> table(const std::string& trees) {
  const auto path =
      std::filesystem::temp_directory_path() / ("workspace_table_test_" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << R"({"format": "workspaces/1")" << trees << "}";
  Result<WorkspaceTable> result = WorkspaceTable::load(path);
  std::filesystem::remove(path);
  return result;
}

std::string forward_tree(const std::string& nodes) {
  return R"(, "convolution": [)" + nodes + R"(], "input_gradient": [], "weight_gradient": [], "recurrent": [])";
}

const ConvolutionShape kShape{.batch = 2, .channels = 6, .filters = 8, .kernel = 9, .image = 100, .out_image = 100};

int64_t forward_bytes(const std::string& nodes) {
  const auto loaded = table(forward_tree(nodes));
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  return loaded->convolution(ConvolutionPass::convolution, kShape).value_or(-1);
}

TEST(WorkspaceTable, ReadsFormulas) {
  const int64_t input = 2 * 100 * 8 * 4;  // six channels are padded to eight
  const int64_t output = 2 * 100 * 8 * 4;
  const int64_t weight = 8 * 8 * 9 * 4;
  EXPECT_EQ(forward_bytes(R"({"is": "none"})"), 0);
  EXPECT_EQ(forward_bytes(R"({"is": "iow"})"), input + output + weight);
  EXPECT_EQ(forward_bytes(R"({"is": "i"})"), input);
  EXPECT_EQ(forward_bytes(R"({"is": "ow"})"), output + weight);
  EXPECT_EQ(forward_bytes(R"({"is": "abs1048576"})"), 1048576);
  EXPECT_EQ(forward_bytes(R"({"is": "ratio0.5"})"), (2 * 100 * 14 * 4 + 6 * 8 * 9 * 4) / 2);
  EXPECT_EQ(forward_bytes(R"({"is": "split4"})"), 6 * 8 * 9 * 4 * 4);
  EXPECT_EQ(forward_bytes(R"({"is": "batched_w4"})"), 2 * 6 * 8 * 9 * 4);
}

TEST(WorkspaceTable, FollowsTheTree) {
  const std::string leaves = R"(, {"is": "i"}, {"is": "o"})";
  EXPECT_EQ(forward_bytes(R"({"feature": "kernel", "at": 8.5, "below": 1, "above": 2})" + leaves), 2 * 100 * 8 * 4);
  EXPECT_EQ(forward_bytes(R"({"feature": "channels_last", "at": 0.5, "below": 2, "above": 1}, {"is": "none"}, )"
                          R"({"is": "abs512"})"),
            512);
}

TEST(WorkspaceTable, NamesWhatIsWrong) {
  EXPECT_FALSE(table(forward_tree(R"({"is": "guess"})")).ok());
  EXPECT_FALSE(table(forward_tree(R"({"feature": "colour", "at": 1, "below": 1, "above": 1}, {"is": "i"})")).ok());
  EXPECT_FALSE(table(forward_tree(R"({"feature": "kernel", "at": 1, "below": 1, "above": 2}, {"is": "i"})")).ok());
  EXPECT_FALSE(table(forward_tree(R"({"is": "i"}, {"feature": "kernel", "at": 1, "below": 1, "above": 1})")).ok());
  EXPECT_FALSE(WorkspaceTable::load("/nowhere.json").ok());
}

TEST(WorkspaceTable, IsEmptyWithoutAFile) {
  EXPECT_FALSE(WorkspaceTable().convolution(ConvolutionPass::convolution, kShape).has_value());
  EXPECT_GT(WorkspaceTable().recurrent({.batch = 8, .steps = 10, .input = 64, .hidden = 64}), 8 << 20);
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

}  // namespace
}  // namespace forerun
