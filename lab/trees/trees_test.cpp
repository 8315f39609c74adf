#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lab/dataset/metrics.h"
#include "lab/dataset/test_data.h"
#include "lab/trees/boosting.h"
#include "lab/trees/gbdt.h"
#include "lab/trees/op_figures.h"
#include "lab/trees/trees_predictor.h"

namespace forerun::learn {
namespace {

namespace fs = std::filesystem;

TEST(OpFigures, AConvolutionIsAProductByGroup) {
  OpRow row;
  row.dtype = DType::float32;
  const float parameters[] = {16, 32, 28, 28, 64, 14, 14, 3, 3, 1, 1, 2, 2, 1, 1, 2, 4};
  std::copy(std::begin(parameters), std::end(parameters), row.hyper.begin());
  const OpFigures figures = figures_of(row, kConvolution);
  EXPECT_EQ(figures.m, 16 * 14 * 14);
  EXPECT_EQ(figures.n, 32);
  EXPECT_EQ(figures.k, 16 * 9);
  EXPECT_EQ(figures.flops, 2.0 * figures.m * figures.n * figures.k * 2);
  EXPECT_EQ(figures.weight_bytes, 64 * 16 * 9 * 4);
  EXPECT_EQ(figures.bytes, (16.0 * 32 * 28 * 28 + 16.0 * 64 * 14 * 14 + 64.0 * 16 * 9) * 4);
  row.phase = Phase::backward;
  EXPECT_DOUBLE_EQ(figures_of(row, kConvolution).roofline_us, 2 * figures.roofline_us);
}

// Without groups the time goes in steps: until a round of tiles is full, more images take no longer.
TEST(OpFigures, AConvolutionIsComputedInRoundsOfTiles) {
  const auto figures = [](float images, double multiprocessors) {
    OpRow row;
    row.dtype = DType::float32;
    const float parameters[] = {images, 512, 8, 8, 64, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4};
    std::copy(std::begin(parameters), std::end(parameters), row.hyper.begin());
    return figures_of(row, kConvolution, multiprocessors);
  };
  EXPECT_EQ(figures(40, 40).tiled[1].forward, 1);
  EXPECT_EQ(figures(41, 40).tiled[1].forward, 2);
  EXPECT_DOUBLE_EQ(figures(10, 40).roofline_us, figures(40, 40).roofline_us);
  EXPECT_DOUBLE_EQ(figures(41, 40).roofline_us, 2 * figures(40, 40).roofline_us);
  EXPECT_EQ(figures(41, 68).tiled[1].forward, 1);
  EXPECT_EQ(multiprocessors_of("2080Ti"), 68);
  EXPECT_EQ(multiprocessors_of("T4"), 40);
}

// What is fixed stands apart: a layer of 100 times the weights takes far less than 100 times as long as a small one.
TEST(OpFigures, ALinearLayerHasAFixedPart) {
  OpRow row;
  row.dtype = DType::float32;
  const auto roofline = [&](float units, float features) {
    row.hyper = {};
    row.hyper[0] = 4;
    row.hyper[1] = 8;
    row.hyper[2] = features;
    row.hyper[11] = units;
    row.hyper[12] = features;
    return figures_of(row, kLinear).roofline_us;
  };
  const double none = roofline(1, 1);
  EXPECT_NEAR(none, 10, 0.1);
  EXPECT_NEAR(roofline(4096, 9216) - none, 100 * (roofline(409.6F, 921.6F) - none), 30);
  EXPECT_LT(roofline(4096, 9216), 50 * roofline(409.6F, 921.6F));
}

TEST(OpFigures, OtherOpsGoByBytesOrElements) {
  OpRow row;
  row.dtype = DType::float16;
  const float parameters[] = {2, 8, 4, 10, 10};
  std::copy(std::begin(parameters), std::end(parameters), row.hyper.begin());
  EXPECT_EQ(figures_of(row, "152").bytes, 2 * 3200 * 2);
  row.set(Amount::bytes_read, 1e9);
  EXPECT_EQ(figures_of(row, "152").bytes, 1e9F);
  EXPECT_NEAR(figures_of(row, "152").roofline_us, 4000, 1);
}

TEST(OpFigures, BiasesShowBesideAConvolution) {
  std::vector<OpFigures> figures(4);
  for (const size_t i : {0, 2}) {
    figures[i].images = 1;
    figures[i].output_bytes = 1e6;
  }
  const std::string_view names[] = {kConvolution, "152", kConvolution, "205"};
  const Phase phases[] = {Phase::forward, Phase::forward, Phase::forward, Phase::forward};
  set_biases(names, phases, figures);
  EXPECT_NEAR(figures[0].bias_us, 8, 0.1);  // read and written at 250 GB/s
  EXPECT_EQ(figures[2].bias_us, 0);         // batch normalization follows
  EXPECT_EQ(figures[1].bias_us, 0);
}

LaneOp op(uint32_t name, bool forward, double gpu, double gap = 0) {
  return {.name = name, .forward = forward, .gpu_us = gpu, .gap_us = gap};
}

TEST(TraceLanes, WhatHasNoBackwardOpIsSkipped) {
  // 1 2 1 | 1 1: the backward of 2 is missing between those of the two 1.
  const std::vector<LaneOp> ops = {op(1, true, 5), op(2, true, 7), op(1, true, 5), op(1, false, 5), op(1, false, 5)};
  const auto skipped = skipped_ops(ops);
  EXPECT_EQ(skipped[3], std::vector<uint32_t>{1});
  EXPECT_TRUE(skipped[4].empty());
}

TEST(TraceLanes, LearnsTheHostItsWaitsAndUntracedWork) {
  // Kind 1: short ops that the host issues 100 us apart. Kind 2: long, and the host waits 60 us behind. Kind 3: no backward
  // op, three times as long as forward.
  std::vector<std::vector<LaneOp>> traces;
  for (int i = 0; i < 30; ++i) {
    traces.push_back({op(1, true, 10, 90), op(1, true, 10, 90), op(2, true, 2000, 60), op(3, true, 1000, 1),
                      op(2, true, 2000, 60), op(2, false, 2000, 3000), op(2, false, 2000, 1)});
  }
  TraceLanes lanes;
  lanes.fit(traces);
  const auto guesses = lanes.guess(traces[0]);
  EXPECT_NEAR(guesses[0].gap_us, 90, 1);
  EXPECT_NEAR(guesses[1].gap_us, 90, 1);
  EXPECT_NEAR(guesses[2].gap_us, 60, 1);
  EXPECT_NEAR(guesses[5].untraced_us, 3000, 1);
  EXPECT_NEAR(guesses[5].gap_us, 3000, 1);

  const auto again = TraceLanes::from_json(lanes.to_json());
  ASSERT_TRUE(again.ok());
  const auto same = again->guess(traces[0]);
  for (size_t i = 0; i < same.size(); ++i) EXPECT_EQ(same[i].gap_us, guesses[i].gap_us);
  EXPECT_FALSE(TraceLanes::from_json({{"typical", {{1, 2}}}, {"untraced", nlohmann::json::array()}}).ok());
}

TEST(TraceLanes, BackwardBeginsLaterTheMoreOpsThereAre) {
  // 200 us and 2 us for each op; one trace in three was disturbed there.
  std::vector<std::vector<LaneOp>> traces;
  for (size_t i = 0; i < 60; ++i) {
    std::vector<LaneOp> ops(60 + 10 * i, op(1, true, 10, 90));
    ops.resize(2 * ops.size(), op(1, false, 10, 30));
    ops[ops.size() / 2 - 1].gap_us = i % 3 == 0 ? 5000 : 200 + 2 * static_cast<double>(ops.size());
    traces.push_back(std::move(ops));
  }
  TraceLanes lanes;
  lanes.fit(traces);
  std::vector<LaneOp> small(20, op(1, true, 10));
  small.resize(40, op(1, false, 10));
  EXPECT_NEAR(lanes.guess(small)[19].gap_us, 200 + 2 * 40, 60);  // fewer ops than any trace had
  EXPECT_NEAR(lanes.guess(traces.back())[traces.back().size() / 2 - 1].gap_us, 200 + 2.0 * 1300, 260);
  const auto again = TraceLanes::from_json(lanes.to_json());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->guess(small)[19].gap_us, lanes.guess(small)[19].gap_us);
}

TEST(TraceLanes, AKindThatWasNeverSeenTakesWhatOthersDo) {
  std::vector<std::vector<LaneOp>> traces;
  for (int i = 0; i < 30; ++i) {
    traces.push_back({op(1, true, 10, 90), op(2, true, 10, 190), op(3, true, 10, 790), op(4, true, 10, 90),
                      op(4, false, 10, 20), op(1, false, 10, 20)});
  }
  TraceLanes lanes;
  lanes.fit(traces);
  const std::vector<LaneOp> ops = {op(9, true, 10), op(9, true, 10), op(1, false, 10), op(9, false, 10)};
  const auto guesses = lanes.guess(ops);
  EXPECT_NEAR(guesses[0].host_us, 100, 1);
  EXPECT_NEAR(guesses[3].host_us, 30, 1);
}

// Traces of blocks whose linear layer (201) has no backward op in the trace: its time stands as gap before the next.
DataSet traces_with_untraced_work(int groups, int each) {
  DataSet data;
  std::mt19937_64 random(11);
  for (int group = 0; group < groups; ++group) {
    for (int e = 0; e < each; ++e) {
      Example example;
      example.group = "g" + std::to_string(group);
      example.split = 3 * group >= 2 * groups ? Split::test : Split::train;
      example.batch = 1 << (random() % 5);
      const int blocks = 2 + static_cast<int>(random() % 6);
      const auto add = [&](const char* name, Phase phase, double width, double us, double gap) {
        OpRow row;
        row.name = data.intern_name(name);
        row.phase = phase;
        row.set(Amount::flops, 1e7 * example.batch * width);
        row.set(Amount::bytes_read, 1e4 * example.batch * width);
        row.hyper[0] = static_cast<float>(width);
        example.ops.push_back(data.intern(row));
        example.targets.op_us.push_back(static_cast<float>(us));
        example.targets.gap_us.push_back(static_cast<float>(gap));
        example.targets.iteration_ms += (us + gap) / 1000;
      };
      const double width = 4 << (random() % 4);
      const double product = 20 * example.batch * width;
      for (int b = 0; b < blocks; ++b) {
        add("201", Phase::forward, width, product, 1);
        add("152", Phase::forward, width, 5, 20);
      }
      for (int b = 0; b < blocks; ++b) add("152", Phase::backward, width, 5, b + 1 < blocks ? 2 * product : 20);
      data.add(std::move(example));
    }
  }
  return data;
}

template <class P>
double test_error(P& predictor, const DataSet& data, Target quantity = Target::iteration_ms) {
  const Selection test = select(data, Split::test);
  return evaluate(data, test, predictor.predict(data, test), quantity).all.mre;
}

const Settings kQuick = {{"rounds", "60"}, {"other_rounds", "60"}, {"gap_rounds", "40"}, {"depth", "5"}};

class Trees : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_boost()) GTEST_SKIP() << "built without XGBoost";
  }
};

TEST_F(Trees, LearnUntracedWorkAndWhatHoldsForUnseenFamilies) {
  const DataSet data = traces_with_untraced_work(9, 12);
  TreesPredictor trees;
  const auto log = trees.train(data, {.settings = kQuick});
  ASSERT_TRUE(log.ok()) << log.error().message();
  EXPECT_LT(test_error(trees, data), 0.06);
  EXPECT_LT(log->best_validation_error, 0.1);
}

TEST_F(Trees, WeightsAreReadBackToTheSameBits) {
  const std::string folder = testing::TempDir() + "/trees_round_trip";
  fs::create_directories(folder);
  const DataSet data = traces_with_untraced_work(6, 6);
  TreesPredictor trees;
  ASSERT_TRUE(trees.train(data, {.validation = 0, .settings = kQuick}).ok());
  ASSERT_TRUE(trees.save(folder).ok());
  TreesPredictor again;
  const Status status = again.load(folder);
  ASSERT_TRUE(status.ok()) << status.error().message();
  const Selection test = select(data, Split::test);
  const auto before = trees.predict(data, test);
  const auto after = again.predict(data, test);
  for (size_t i = 0; i < test.size(); ++i) EXPECT_EQ(before[i].iteration_ms, after[i].iteration_ms);
  fs::resize_file(fs::path(folder) / "forests.bin.zst", 100);
  EXPECT_FALSE(again.load(folder).ok());
  std::ofstream(fs::path(folder) / "predictor.json") << "{}";
  EXPECT_FALSE(again.load(folder).ok());
  fs::remove_all(folder);
}

TEST_F(Trees, SettingsThatAreNoneAreRefused) {
  const DataSet data = traces_with_untraced_work(3, 2);
  TreesPredictor trees;
  const Settings wrong[] = {{{"rounds", "0"}}, {{"power", "2"}}, {{"round", "2"}}, {{"depth", "3.5"}}};
  for (const Settings& settings : wrong) EXPECT_FALSE(trees.train(data, {.settings = settings}).ok());
  GbdtPredictor gbdt;
  EXPECT_FALSE(gbdt.train(data, {.settings = {{"rounds", "0"}}}).ok());
  EXPECT_FALSE(gbdt.train(data, {.settings = {{"power", "1"}}}).ok());
}

TEST_F(Trees, GbdtLearnsTimeAndMemoryAndIsReadBack) {
  const DataSet data = made_up_data(9, 30);
  GbdtPredictor gbdt;
  ASSERT_TRUE(gbdt.train(data, {.settings = {{"rounds", "80"}, {"depth", "4"}}}).ok());
  EXPECT_LT(test_error(gbdt, data), 0.7 * naive_error(data, Target::iteration_ms));
  EXPECT_LT(test_error(gbdt, data, Target::peak_bytes), 0.1);
  const std::string folder = testing::TempDir() + "/gbdt_round_trip";
  fs::create_directories(folder);
  ASSERT_TRUE(gbdt.save(folder).ok());
  GbdtPredictor again;
  ASSERT_TRUE(again.load(folder).ok());
  EXPECT_EQ(test_error(again, data), test_error(gbdt, data));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace forerun::learn
