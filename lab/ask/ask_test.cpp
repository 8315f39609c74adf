#include "lab/ask/ask.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "lab/ask/op_trace.h"
#include "predict/predict.h"

namespace forerun {
namespace {

class AskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (learn::predictors().empty()) GTEST_SKIP() << "built without LibTorch";
    auto cost_models = load_cost_models();
    ASSERT_TRUE(cost_models) << cost_models.error().message();
    cost_models_ = std::make_unique<CostModels>(std::move(*cost_models));
  }
  TrainingRun run_on(const std::string& gpu) {
    const auto device = cost_models_->devices.find(gpu);
    auto run = build_run({.model = "resnet18", .batch = 64}, *device);
    EXPECT_TRUE(run) << run.error().message();
    return std::move(*run);
  }
  std::unique_ptr<CostModels> cost_models_;
};

TEST_F(AskTest, EachThatCanBeNamedAnswersNearForerun) {
  const TrainingRun run = run_on("h200");
  const Prediction own = predict(run, *cost_models_->devices.find("h200"), *cost_models_);
  for (const std::string& name : askable_predictors()) {
    auto predictor = LearnedPredictor::load(name);
    ASSERT_TRUE(predictor) << predictor.error().message();
    EXPECT_FALSE(predictor->trained_on().empty()) << name;
    EXPECT_TRUE(predictor->judged().contains(learn::Target::iteration_ms)) << name << " is not in data/evaluations";
    const auto answer = predictor->ask(run, *cost_models_);
    ASSERT_TRUE(answer) << answer.error().message();
    ASSERT_TRUE(answer->prediction.iteration_ms) << name;
    // NeuSight learned from fp32 ops of older GPUs, launching included.
    const double factor = name == "neusight" ? 4 : 2.5;
    EXPECT_GT(*answer->prediction.iteration_ms, milliseconds(own.times.iteration) / factor) << name;
    EXPECT_LT(*answer->prediction.iteration_ms, milliseconds(own.times.iteration) * factor) << name;
    if (name == "ets") {
      EXPECT_EQ(answer->prediction.op_us.size(), run.graph.op_count());
      EXPECT_EQ(answer->notes, (std::vector<std::string>{"it does not tell memory"}));
    }
  }
}

TEST_F(AskTest, AnotherGpuIsRefused) {
  auto predictor = LearnedPredictor::load("gbdt");
  ASSERT_TRUE(predictor) << predictor.error().message();
  const auto answer = predictor->ask(run_on("t4"), *cost_models_);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message().find("H200"), std::string::npos);
}

TEST_F(AskTest, PredictorsOfOtherGpusAnswerForThem) {
  const TrainingRun run = run_on("l4");
  for (const char* name : {"habitat", "neusight"}) {
    auto predictor = LearnedPredictor::load(name);
    ASSERT_TRUE(predictor) << predictor.error().message();
    const auto answer = predictor->ask(run, *cost_models_);
    ASSERT_TRUE(answer) << answer.error().message();
    double sum = 0;
    for (const float us : answer->prediction.op_us) sum += us;
    EXPECT_NEAR(*answer->prediction.gpu_busy_ms, sum / 1e3, 1e-3 * sum / 1e3) << name;
    EXPECT_NE(answer->based_on.find("NVIDIA L4"), std::string::npos) << answer->based_on;
    EXPECT_FALSE(answer->prediction.peak_bytes) << name;
    TrainingRun elsewhere = run;
    elsewhere.environment.gpu = "mi300x";
    EXPECT_FALSE(predictor->ask(elsewhere, *cost_models_)) << name;
  }
}

TEST_F(AskTest, HabitatCarriesOverWhatWasMeasuredElsewhere) {
  const TrainingRun run = run_on("l4");
  auto habitat = LearnedPredictor::load("habitat");
  ASSERT_TRUE(habitat) << habitat.error().message();
  OriginTimes origin{.gpu = "t4", .op_us = std::vector<float>(run.graph.op_count(), 100)};
  const auto once = habitat->ask(run, *cost_models_, &origin);
  origin.op_us.assign(run.graph.op_count(), 200);
  const auto twice = habitat->ask(run, *cost_models_, &origin);
  ASSERT_TRUE(once && twice);
  EXPECT_NEAR(*twice->prediction.iteration_ms, 2 * *once->prediction.iteration_ms, 1e-3);
  EXPECT_NE(once->based_on.find("measured on Tesla T4"), std::string::npos) << once->based_on;
  origin.gpu = "l4";  // of the GPU that is asked about: no prediction
  const auto own = habitat->ask(run, *cost_models_, &origin);
  ASSERT_TRUE(own);
  EXPECT_NE(own->based_on.find("that Forerun predicts for NVIDIA H200"), std::string::npos) << own->based_on;
}

TEST_F(AskTest, UnknownNamesAndWeightsOfOthersAreRefused) {
  EXPECT_NE(LearnedPredictor::load("paleo").error().message().find("there are ets, dnnperf"), std::string::npos);
  const auto folder = data_dir();
  ASSERT_TRUE(folder);
  const auto other = LearnedPredictor::load("ets", (*folder / "weights/h200/gbdt").string());
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message().find("weights of 'gbdt'"), std::string::npos);
}

TEST_F(AskTest, TraceOfOpsAsTableCsvPictureAndChromeTrace) {
  const TrainingRun run = run_on("h200");
  auto predictor = LearnedPredictor::load("ets");
  ASSERT_TRUE(predictor);
  const auto answer = predictor->ask(run, *cost_models_);
  ASSERT_TRUE(answer);
  std::vector<OpTime> measured(run.graph.op_count(), OpTime{.gpu_us = 2, .gap_us = 1});
  const OpTrace trace = op_trace(run, "ets", answer->prediction, measured);
  ASSERT_TRUE(trace.has_measured());
  EXPECT_EQ(trace.rows.size(), run.graph.op_count()) << "each of them was measured to take time";
  const std::string csv = to_csv(trace);
  EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')), trace.rows.size() + 1);
  EXPECT_NE(csv.find("aten.convolution.default"), std::string::npos);
  EXPECT_NE(to_text(trace).find("measured ms"), std::string::npos);
  EXPECT_NE(to_svg(trace).find("measured"), std::string::npos);
  const auto chrome = nlohmann::json::parse(to_chrome(trace));
  EXPECT_EQ(chrome.at("traceEvents").size(), 2 * (trace.rows.size() + 1));
  const OpTrace alone = op_trace(run, "ets", answer->prediction, {});
  EXPECT_FALSE(alone.has_measured());
  EXPECT_LT(alone.rows.size(), trace.rows.size()) << "views take no time";
  EXPECT_EQ(to_csv(alone).find("measured"), std::string::npos);
}

}  // namespace
}  // namespace forerun
