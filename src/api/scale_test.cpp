#include "api/scale.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "api/predict.h"
#include "api/scale_records.h"
#include "api/scale_resources.h"
#include "api/scale_suite.h"
#include "api/testbed_suite.h"
#include "base/needs_dataset.h"

namespace forerun {
namespace {

const Knowledge& scale_knowledge() {
  static const Knowledge loaded = [] {
    Result<Knowledge> result = load_knowledge();
    CHECK(result.ok(), result.error().message());
    return std::move(*result);
  }();
  return loaded;
}

ScaleAnswer answer_to(const ScaleQuestion& question) {
  auto answer = scale_out(question, scale_knowledge());
  EXPECT_TRUE(answer) << answer.error().message();
  return answer ? std::move(*answer) : ScaleAnswer();
}

// The bar is 8 %: vTrain's own error is 8.37 %. A worse table than before is a fault too.
TEST(ScaleSuite, MegatronOnOneMachine) {
  NEEDS_DATASET(rows, "vtrain/ground_truth_single.csv");
  const auto accuracy = evaluate_vtrain({.rows = rows});
  ASSERT_TRUE(accuracy) << accuracy.error().message();
  EXPECT_EQ(accuracy->cases.size(), 1440);
  EXPECT_LT(accuracy->mean_error(false), 0.05);
  for (const ScaleCase& c : accuracy->cases) EXPECT_EQ(c.fitted, c.gpus == 2);
}

TEST(ScaleSuite, TheFitIsRepeatable) {
  NEEDS_DATASET(vtrain, "vtrain");
  const std::string out = testing::TempDir() + "/refit.json";
  const auto outcome =
      train_scale({.rows = vtrain + "/ground_truth_single.csv", .tables = vtrain + "/trace/a100"}, out);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(outcome->rows, 240);
  std::ifstream fitted(out);
  const std::string text((std::istreambuf_iterator<char>(fitted)), std::istreambuf_iterator<char>());
  std::ifstream kept(std::string(FORERUN_DATA_DIR) + "/" + kMegatronEfficiency);
  const auto a = nlohmann::json::parse(text);
  const auto b = nlohmann::json::parse(kept);
  EXPECT_NEAR(a["gemm"].get<double>(), b["gemm"].get<double>(), 1e-3);
  EXPECT_NEAR(a["within"]["share"].get<double>(), b["within"]["share"].get<double>(), 1e-3);
  std::filesystem::remove(out);
}

// Nothing was fitted to these: 32 to 3,072 GPUs.
TEST(ScaleSuite, MegatronAtScale) {
  const auto accuracy = evaluate_megatron({});
  ASSERT_TRUE(accuracy) << accuracy.error().message();
  EXPECT_EQ(accuracy->cases.size(), 10);
  EXPECT_LT(accuracy->mean_error(false), 0.04);
  for (const ScaleCase& c : accuracy->cases) EXPECT_LT(std::abs(c.error()), 0.1) << c.group;
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
  const Device gpu = *scale_knowledge().devices.find("h200");
  const Prediction prediction = predict(*build_run(request, gpu), gpu, scale_knowledge());
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

TEST(Scale, NamesWhatIsWrong) {
  const auto problem = [](const ScaleQuestion& question) {
    const auto answer = scale_out(question, scale_knowledge());
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
  const auto answer = simulate_training(question, scale_knowledge());
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->mode, "sync");
  const double iteration = milliseconds(answer->use.iteration);
  for (size_t i = 0; i < answer->use.metrics.size(); ++i) {
    const monitor::BurstMetrics& m = answer->use.metrics[i];
    EXPECT_EQ(m.pattern, monitor::Pattern::kAlternating);
    // Worker 0's link has one burst an iteration, the GPU as many as workers compute apart from each other.
    const double period = m.idle_ms + m.burst_ms;
    EXPECT_GT(period, (i < 2 ? 0.45 : 0.9) * iteration) << scale::kResources[i];
    EXPECT_LT(period, 1.1 * iteration) << scale::kResources[i];
  }
  question.async = true;
  EXPECT_LT(simulate_training(question, scale_knowledge())->use.iteration, answer->use.iteration);
  question.setting = "AR4-10G";
  EXPECT_FALSE(simulate_training(question, scale_knowledge()));
  const auto written = nlohmann::json::parse(to_json(*answer));
  EXPECT_EQ(written["metrics"].size(), 4);
  EXPECT_EQ(written["series"]["gpu"].size(), answer->use.series[0].values.size());
}

// Workloads that nobody measured, simulated; then taken for measured.
TEST(ScaleResources, RecordsOfWorkloads) {
  const std::string path = testing::TempDir() + "/workloads.jsonl";
  const std::string head =
      R"({"schema":"resources/1","id":"a","status":"ok","family":"resnet","args":{"block":"basic","layers":[1,1,1,1]},)"
      R"("input":["image",16,3,96,1000],"run":{"precision":"fp32","optimizer":{"name":"SGD","impl":"foreach","lr":0.1},)"
      R"("channels_last":false},"model":"resnet10","setting":"P1w2-10G","mode":"sync"})";
  std::ofstream(path) << head << "\n{broken\n"
                      << R"({"schema":"run/1","id":"b"})"
                      << "\n";
  std::string simulated;
  int bad = 0;
  const WorkloadHandlers handlers{
      [&](const RecordedWorkload& workload) { simulated += simulated_record(workload) + "\n"; },
      [&](const Error&) { ++bad; }};
  ASSERT_TRUE(simulate_records({path}, "h200", scale_knowledge(), *testbed_rates(), handlers));
  EXPECT_EQ(bad, 1);
  const auto record = nlohmann::json::parse(simulated);
  EXPECT_EQ(record["source"], "simulation");
  EXPECT_EQ(record["family"], "resnet");
  EXPECT_GT(record["metrics"]["send"]["amount"].get<double>(), 100);
  EXPECT_FALSE(evaluate_testbed({.records = {path}}, scale_knowledge()));  // no metrics
  std::ofstream(path) << simulated;
  const auto accuracy = evaluate_testbed({.records = {path}}, scale_knowledge());
  ASSERT_TRUE(accuracy) << accuracy.error().message();
  EXPECT_EQ(accuracy->records, 1);
  for (const char* resource : scale::kResources) EXPECT_LT(accuracy->mean_error(resource, 1), 1e-4) << resource;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace forerun
