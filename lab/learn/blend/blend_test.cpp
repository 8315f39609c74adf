#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lab/dataset/test_data.h"
#include "lab/learn/blend/blend_predictor.h"
#include "lab/learn/predictors.h"
#include "lab/trees/boosting.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

TEST(Blend, IsTheMeanByShareOpByOp) {
  Prediction a{.iteration_ms = 1, .gpu_busy_ms = 0.5, .op_us = {100, 400}, .gap_us = {300, 200}};
  Prediction b{.iteration_ms = 2, .op_us = {200, 800}, .gap_us = {600, 400}};
  const auto mean = mean_of({a}, {b}, {0.25, 0.25});
  ASSERT_EQ(mean.size(), 1U);
  EXPECT_DOUBLE_EQ(*mean[0].iteration_ms, 1.25);
  EXPECT_FALSE(mean[0].gpu_busy_ms);  // one of them does not say
  EXPECT_EQ(mean[0].op_us, (std::vector<float>{125, 500}));
  EXPECT_EQ(mean[0].gap_us, (std::vector<float>{375, 250}));
  b.gpu_busy_ms = 1;
  const auto apart = mean_of({a}, {b}, {0.25, 0.75});
  EXPECT_DOUBLE_EQ(*apart[0].gpu_busy_ms, 0.625);
  EXPECT_DOUBLE_EQ(*apart[0].iteration_ms, 0.625 + 0.875);
  EXPECT_EQ(apart[0].op_us, (std::vector<float>{125, 500}));
  EXPECT_EQ(apart[0].gap_us, (std::vector<float>{525, 350}));
}

TEST(Blend, SettingsGoToTheMemberTheyName) {
  if (!can_boost()) GTEST_SKIP() << "this build cannot grow trees";
  const DataSet data = made_up_data(6, 4);
  BlendPredictor blend;
  const auto log = blend.train(
      data,
      {.epochs = 2, .device = "cpu", .settings = {{"share", "0.75"}, {"trees.rounds", "5"}, {"ets.layers", "1"}}});
  ASSERT_TRUE(log.ok()) << log.error().message();
  EXPECT_EQ(blend.settings().at("share"), "0.75");
  EXPECT_EQ(blend.settings().at("gap_share"), "0.75");  // unless set: the same
  EXPECT_EQ(blend.settings().at("trees.rounds"), "5");
  EXPECT_EQ(blend.settings().at("ets.layers"), "1");
  for (const Settings& wrong : {Settings{{"share", "2"}}, {{"rounds", "5"}}, {{"ets.layer", "1"}}}) {
    EXPECT_FALSE(blend.train(data, {.epochs = 1, .settings = wrong}).ok()) << wrong.begin()->first;
  }
}

TEST(Blend, FindsMembersBesideItself) {
  if (!can_boost()) GTEST_SKIP() << "this build cannot grow trees";
  const fs::path root = fs::path(testing::TempDir()) / "blend_members";
  fs::remove_all(root);
  const DataSet data = made_up_data(6, 4);
  const TrainOptions options{.epochs = 2, .device = "cpu", .settings = {{"ets.layers", "1"}}};
  BlendPredictor blend;
  const auto log = blend.train(data, options);
  ASSERT_TRUE(log.ok()) << log.error().message();
  ASSERT_TRUE(save_weights((root / "blend").string(), "blend", blend, data, options, *log).ok());
  for (const char* member : {"trees", "ets"}) fs::rename(root / "blend" / member, root / member);
  EXPECT_FALSE(load_weights((root / "blend").string()).ok());
  std::ofstream(root / "blend" / "predictor.json")
      << R"({"settings": {"share": "0.5"}, "trees": "../trees", "ets": "../ets"})";
  auto loaded = load_weights((root / "blend").string());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const Selection test = select(data, Split::test);
  const auto before = blend.predict(data, test);
  const auto after = loaded->predictor->predict(data, test);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].op_us, after[i].op_us);
  fs::remove_all(root);
}

}  // namespace
}  // namespace forerun::learn
