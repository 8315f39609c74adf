#include "api/scale.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "api/scale_records.h"
#include "api/scale_resources.h"
#include "base/needs_dataset.h"
#include "predict/predict.h"
#include "report/scale.h"
#include "report/scale_resources.h"

namespace forerun {
namespace {

const CostModels& scale_cost_models() {
  static const CostModels loaded = [] {
    Result<CostModels> result = load_cost_models();
    CHECK(result.ok(), result.error().message());
    return std::move(*result);
  }();
  return loaded;
}

ScaleAnswer answer_to(const ScaleQuestion& question) {
  auto answer = scale_out(question, scale_cost_models());
  EXPECT_TRUE(answer) << answer.error().message();
  return answer ? std::move(*answer) : ScaleAnswer();
}

TEST(Scale, AnswersForGpt3On512Gpus) {
  const ScaleAnswer answer =
      answer_to({.model = "gpt3_175b", .gpu = "a100", .gpus = {512}, .search = true, .global_batch = 1536});
  EXPECT_GT(answer.feasible, 50);
  EXPECT_GT(answer.too_large, 50);
  EXPECT_EQ(answer.feasible, static_cast<int64_t>(answer.steps.size()));
  for (const scale::Step& step : answer.steps) EXPECT_LE(step.memory.total(), answer.device_memory);
  EXPECT_GT(answer.steps.front().plan.tensor * answer.steps.front().plan.pipeline, 8);
  EXPECT_EQ(
      to_json(answer),
      to_json(answer_to({.model = "gpt3_175b", .gpu = "a100", .gpus = {512}, .search = true, .global_batch = 1536})));
}

TEST(Scale, TakesWhateverIsAModel) {
  const std::string tree = FORERUN_SOURCE_DIR;
  for (const char* file :
       {"/tests/data/capture.jsonl", "/examples/onnx/small_cnn.onnx", "/tests/corpus/sniff/model_config"}) {
    const ScaleAnswer one = answer_to({.model = tree + file, .gpus = {1}, .micro_batch = 4});
    const ScaleAnswer two = answer_to({.model = tree + file, .gpus = {2}, .micro_batch = 4});
    ASSERT_EQ(one.steps.size(), 1U) << file;
    ASSERT_EQ(two.steps.size(), 1U) << file;
    EXPECT_GT(one.parameters, 0) << file;
    EXPECT_GE(two.steps[0].time, one.steps[0].time) << file;
  }
  // A capture has a batch of its own.
  const ScaleAnswer own = answer_to({.model = tree + "/tests/data/capture.jsonl", .gpus = {2}});
  ASSERT_EQ(own.steps.size(), 1U);
  EXPECT_EQ(own.steps[0].samples, 8);
}

TEST(Scale, SearchesForEachNumberOfGpus) {
  const ScaleAnswer answer =
      answer_to({.model = "gpt3_175b", .gpu = "a100", .gpus = {8, 128, 512}, .search = true, .global_batch = 1536});
  ASSERT_EQ(answer.steps.size(), 2);  // eight cannot hold it
  EXPECT_NE(answer.assumptions.front().find("no plan fits on 8 GPUs"), std::string::npos);
  EXPECT_EQ(answer.steps[0].plan.gpus(), 128);
  EXPECT_LT(answer.steps[1].time, answer.steps[0].time);
}

TEST(Scale, OneGpuIsWhatPredictSays) {
  const ScaleAnswer answer = answer_to({.model = "resnet50", .gpus = {1}, .micro_batch = 32});
  ModelRequest request{.model = "resnet50", .batch = 32};
  const Device gpu = *scale_cost_models().devices.find("h200");
  const Prediction prediction = predict(*build_run(request, gpu), gpu, scale_cost_models());
  const scale::Step& step = answer.steps.front();
  EXPECT_NEAR(milliseconds(step.time), milliseconds(prediction.times.iteration), 0.01);
  EXPECT_EQ(step.memory.total(), prediction.memory.peak_reserved + prediction.context);
  EXPECT_NEAR(step.efficiency, 1, 1e-4);
}

TEST(Scale, MoreGpusAreFasterAndNeverIdeal) {
  const ScaleAnswer answer = answer_to(
      {.model = "resnet50", .gpu = "v100", .gpus = {1, 2, 4, 8, 16}, .node = 4, .network = "10gbe", .micro_batch = 64});
  for (size_t i = 1; i < answer.steps.size(); ++i) {
    EXPECT_GT(answer.steps[i].samples_per_second, answer.steps[i - 1].samples_per_second);
    EXPECT_LT(answer.steps[i].efficiency, 1 + 1e-9);
  }
  const std::string svg = to_svg(answer);
  EXPECT_TRUE(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
}

TEST(Scale, SchedulesOfReplicasDiffer) {
  std::map<std::string, Nanoseconds> exposed;
  for (const char* schedule : {"dp", "bsp", "wfbp", "mg-wfbp", "bytescheduler", "ps,bsp,servers=4"}) {
    const ScaleAnswer answer = answer_to({.model = "resnet50",
                                          .gpu = "v100",
                                          .gpus = {16},
                                          .node = 4,
                                          .network = "10gbe",
                                          .strategy = schedule,
                                          .micro_batch = 32});
    ASSERT_EQ(answer.steps.size(), 1);
    exposed[schedule] = answer.steps[0].exposed;
    EXPECT_LE(answer.steps[0].exposed, answer.steps[0].exchange * 2) << schedule;  // servers: there and back
  }
  EXPECT_LT(exposed["dp"], exposed["bsp"]);
  EXPECT_LT(exposed["wfbp"], exposed["bsp"]);
  EXPECT_LE(exposed["mg-wfbp"], exposed["wfbp"]);
  EXPECT_LE(exposed["bytescheduler"].value, exposed["bsp"].value);
}

// Products are counted against the units that run them: nothing is faster than its peak, but convolutions on fp32 lanes, where
// Winograd's algorithm multiplies less than is counted.
TEST(Scale, NoModelIsFasterThanThePeak) {
  for (const char* model : {"resnet50", "mobilenet_v2", "vgg16", "convnext_tiny", "vit_b_16", "lstm", "unet", "dlrm",
                            "gpt2_small", "bert_large", "llama2_7b"}) {
    for (const Device& gpu : scale_cost_models().devices.devices()) {
      for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::amp_bf16}) {
        ScaleQuestion question{
            .model = model, .gpu = gpu.name, .gpus = {1}, .micro_batch = 32, .default_precision = false};
        question.setup.precision = precision;
        const auto answer = scale_out(question, scale_cost_models());
        if (!answer && precision == Precision::amp_bf16 && gpu.peak.bf16_tensor <= 0) continue;
        ASSERT_TRUE(answer) << model << " " << gpu.name << ": " << answer.error().message();
        const double share = answer->steps[0].model_flops_share;
        EXPECT_GT(share, 0) << model << " " << gpu.name;
        EXPECT_LE(share, gpu.peak.tf32_tensor > 0 ? 1 : 1.5) << model << " " << gpu.name << " " << name_of(precision);
      }
    }
  }
}

// Two nodes of the same connection: what four GPUs of a node push is what one pushes, after their sum.
TEST(Scale, ParameterServersDoNotGetSlowerByGpusOfANode) {
  const auto asked = [](const char* model, int64_t gpus, int64_t node, const char* strategy) {
    return answer_to({.model = model,
                      .gpu = "a100",
                      .gpus = {gpus},
                      .node = node,
                      .network = "10gbe",
                      .strategy = strategy,
                      .micro_batch = 8});
  };
  for (const char* model : {"bert_large", "resnet50"}) {
    const ScaleAnswer one = asked(model, 8, 1, "ps");
    const ScaleAnswer four = asked(model, 32, 4, "ps");
    EXPECT_EQ(one.steps[0].plan.servers, 8);
    EXPECT_EQ(four.steps[0].plan.servers, 8);
    EXPECT_LT(milliseconds(four.steps[0].time), 1.2 * milliseconds(one.steps[0].time)) << model;
    EXPECT_GE(four.steps[0].time, one.steps[0].time) << model;
    EXPECT_GT(asked(model, 32, 4, "ps,servers=2").steps[0].time, four.steps[0].time) << model;
    // Servers on every node move as many bytes as a ring does.
    const double ring = milliseconds(asked(model, 32, 4, "dp").steps[0].time);
    EXPECT_NEAR(milliseconds(four.steps[0].time), ring, 0.25 * ring) << model;
    EXPECT_LE(asked(model, 32, 4, "ps-async").steps[0].time, four.steps[0].time) << model;
  }
}

TEST(Scale, SaysWhichPrecision) {
  EXPECT_EQ(answer_to({.model = "gpt2"}).precision, "amp_bf16");
  EXPECT_EQ(answer_to({.model = "resnet18"}).precision, "fp32");
  const std::string text = to_text(answer_to({.model = "gpt2", .gpu = "v100"}));
  EXPECT_NE(text.find("float16 weights"), std::string::npos) << text;
  ScaleQuestion question{.model = "resnet18", .gpu = "v100", .default_precision = false};
  question.setup.precision = Precision::amp_bf16;
  EXPECT_FALSE(scale_out(question, scale_cost_models()));
  question.setup.precision = Precision::tf32;
  EXPECT_NE(to_text(answer_to(question)).find("no TF32 units"), std::string::npos);
}

TEST(Scale, NamesWhatIsWrong) {
  const auto problem = [](const ScaleQuestion& question) {
    const auto answer = scale_out(question, scale_cost_models());
    return answer ? std::string() : answer.error().message();
  };
  EXPECT_NE(problem({.model = "resnet50", .strategy = "tp=2"}).find("not shared"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2", .gpus = {12}}).find("--node"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2", .strategy = "pp=8"}).find("layers"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2", .network = "carrier pigeon"}).find("--network"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2", .strategy = "wfbp"}).find("WFBP"), std::string::npos);
  EXPECT_NE(problem({.model = "gtp2"}).find("gpt2"), std::string::npos);
}

TEST(ScaleResources, SimulatesTheTestbed) {
  ResourceQuestion question{.model = "resnet18", .batch = 16, .setting = "P1w2-10G"};
  const auto answer = simulate_training(question, scale_cost_models());
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->mode, "sync");
  const double iteration = milliseconds(answer->use.iteration);
  for (size_t i = 0; i < answer->use.metrics.size(); ++i) {
    const monitor::BurstMetrics& m = answer->use.metrics[i];
    EXPECT_EQ(m.pattern, monitor::Pattern::kAlternating);
    // Worker 0's link has one burst an iteration; the GPU as many as workers compute apart from each other, and copies.
    const double period = m.idle_ms + m.burst_ms;
    EXPECT_GT(period, (i < 2 ? 0.2 : 0.9) * iteration) << scale::kResources[i];
    EXPECT_LT(period, 1.1 * iteration) << scale::kResources[i];
  }
  question.async = true;
  EXPECT_LT(simulate_training(question, scale_cost_models())->use.iteration, answer->use.iteration);
  question.setting = "AR4-10G";
  EXPECT_FALSE(simulate_training(question, scale_cost_models()));
  const auto written = nlohmann::json::parse(to_json(*answer));
  EXPECT_EQ(written["metrics"].size(), 4);
  EXPECT_EQ(written["series"]["gpu"].size(), answer->use.series[0].values.size());
  // The picture's titles have the figures of the table.
  const std::string text = to_text(*answer), svg = to_svg(*answer);
  for (const monitor::BurstMetrics& m : answer->use.metrics) {
    const std::string burst = fmt::format("{:.1f}", m.burst_ms), idle = fmt::format("{:.1f}", m.idle_ms);
    EXPECT_NE(text.find("  " + burst), std::string::npos) << text;
    EXPECT_NE(svg.find("burst " + burst + " ms, idle " + idle + " ms, amount " + fmt::format("{:.1f}", m.amount)),
              std::string::npos)
        << svg.substr(0, 1000);
  }
}

}  // namespace
}  // namespace forerun
