// What-ifs against measured variants of the same step: trace of the base in, measured time of the variant beside it.
// The bands guard against getting worse; host-bound runs of one configuration differ by tens of percent between
// themselves, so they are wide.
#include "api/whatif.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/needs_dataset.h"
#include "base/output_file.h"
#include "ingest/kineto/kineto_reader.h"
#include "report/whatif.h"

namespace forerun {
namespace {

const CostModels& whatif_cost_models() {
  static const CostModels cost_models = [] {
    auto loaded = load_cost_models();
    EXPECT_TRUE(loaded.ok()) << loaded.error().message();
    return loaded.ok() ? std::move(*loaded) : CostModels{};
  }();
  return cost_models;
}

ModelRequest request_of(const std::string& model, int64_t batch) {
  ModelRequest request;
  request.model = model;
  request.batch = batch;
  request.default_optimizer = false;
  request.setup.optimizer.kind = OptimizerKind::adam;
  request.setup.optimizer.impl = OptimizerImpl::forloop;
  return request;
}

TEST(WhatIfTest, TakesACaptureAsItWasRecorded) {
  const ModelRequest capture{.model = FORERUN_SOURCE_DIR "/tests/data/capture.jsonl", .file = FileKind::records};
  const auto asked = [&](const char* optimization) {
    WhatIfQuestion question;
    question.applications = *whatif::parse_applications({optimization});
    return what_if(capture, question, whatif_cost_models());
  };
  const auto graphs = asked("cuda_graphs");
  ASSERT_TRUE(graphs.ok()) << graphs.error().message();
  const Device device = *whatif_cost_models().devices.find(kDefaultGpu);
  const auto run = build_run(capture, device);
  ASSERT_TRUE(run.ok()) << run.error().message();
  const double predicted = milliseconds(predict(*run, device, whatif_cost_models()).times.iteration);
  EXPECT_NEAR(graphs->baseline_ms, predicted, 0.01 * predicted);
  EXPECT_LT(graphs->predicted_ms, graphs->baseline_ms);
  const auto larger = asked("batch:factor=2");  // the capture can be moved
  EXPECT_TRUE(larger.ok()) << larger.error().message();
}

// A library's loop waits: both verbs say the same of it.
TEST(WhatIfTest, BeginsWhereThePredictionOfALoopEnds) {
  for (const TrainingLoop loop : {TrainingLoop::trainer, TrainingLoop::lightning, TrainingLoop::accelerate}) {
    ModelRequest model = request_of("resnet18", 16);
    model.setup.loop = loop;
    WhatIfQuestion question;
    question.applications = *whatif::parse_applications({"fused_adam"});
    const auto answer = what_if(model, question, whatif_cost_models());
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    const Device device = *whatif_cost_models().devices.find(kDefaultGpu);
    const double predicted =
        milliseconds(predict(*build_run(model, device), device, whatif_cost_models()).times.iteration);
    EXPECT_NEAR(answer->baseline_ms, predicted, 0.01 * predicted) << name_of(loop);
  }
}

TEST(WhatIfSweepTest, ReadsWhatVaries) {
  const auto networks = parse_what_if_sweep("bandwidth=1gbe,10gbe");
  ASSERT_TRUE(networks.ok()) << networks.error().message();
  EXPECT_EQ(networks->key, "network");
  EXPECT_EQ(networks->values, (std::vector<std::string>{"1gbe", "10gbe"}));
  EXPECT_EQ(parse_what_if_sweep("bandwidth=1,2.5")->key, "bandwidth_gbps");
  EXPECT_EQ(parse_what_if_sweep("workers=2")->key, "workers");
  for (const char* wrong : {"workers", "workers=", "workers=2,,4", "=2", "workers=2,2"}) {
    EXPECT_FALSE(parse_what_if_sweep(wrong).ok()) << wrong;
  }
}

// Each point is the question asked by itself, and P3 is never behind the servers that it improves on.
TEST(WhatIfSweepTest, AsksOnceForEachValueAndCurve) {
  const ModelRequest model = request_of("resnet50", 32);
  WhatIfQuestion question;
  question.applications = *whatif::parse_applications({"parameter_server:workers=4,slice_mb=1000", "p3:workers=4"});
  auto sweep = parse_what_if_sweep("bandwidth=1gbe,10gbe,100gbe");
  ASSERT_TRUE(sweep.ok());
  sweep->each = true;
  const auto answer = sweep_what_ifs(model, question, *sweep, whatif_cost_models());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_EQ(answer->curves.size(), 2U);
  ASSERT_EQ(answer->curves[1].points.size(), 3U);
  WhatIfQuestion alone;
  alone.applications = *whatif::parse_applications({"p3:workers=4,network=10gbe"});
  const auto asked = what_if(model, alone, whatif_cost_models());
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(answer->curves[1].points[1].predicted_ms, asked->predicted_ms);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_LE(answer->curves[1].points[i].predicted_ms, answer->curves[0].points[i].predicted_ms * 1.01);
    EXPECT_LE(answer->curves[0].points[i].predicted_ms, answer->curves[0].points[i == 0 ? 0 : i - 1].predicted_ms);
  }
  EXPECT_LT(answer->curves[1].points[0].predicted_ms, 0.95 * answer->curves[0].points[0].predicted_ms);
  sweep->key = "segments";
  const auto refused = sweep_what_ifs(model, question, *sweep, whatif_cost_models());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("segments"), std::string::npos);
}

// A what-if on a model changes a predicted iteration; the changed setup predicted directly is the same iteration.
TEST(WhatIfTest, ModelAgreesWithPredictingTheChangedSetup) {
  const auto device = whatif_cost_models().devices.find("h200");
  ASSERT_TRUE(device.ok());
  const auto predicted = [&](const ModelRequest& request) {
    const auto run = build_run(request, *device);
    EXPECT_TRUE(run.ok());
    return milliseconds(predict(*run, *device, whatif_cost_models()).times.iteration);
  };
  const auto asked = [&](const ModelRequest& request, const std::vector<std::string>& applications) {
    WhatIfQuestion question;
    question.applications = *whatif::parse_applications(applications);
    const auto answer = what_if(request, question, whatif_cost_models());
    EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message());
    return answer.ok() ? *answer : WhatIfAnswer{};
  };
  const ModelRequest base = request_of("resnet50", 64);
  ModelRequest amp = base, fused = base;
  amp.setup.precision = Precision::amp_bf16;
  fused.setup.optimizer.impl = OptimizerImpl::fused;
  const WhatIfAnswer with_amp = asked(base, {"amp"});
  EXPECT_NEAR(with_amp.baseline_ms / predicted(base), 1, 0.05);
  EXPECT_NEAR(with_amp.predicted_ms / predicted(amp), 1, 0.08);
  EXPECT_NEAR(asked(base, {"fused_adam"}).predicted_ms / predicted(fused), 1, 0.08);
  EXPECT_NEAR(asked(base, {"batch:factor=2"}).predicted_ms / predicted(request_of("resnet50", 128)), 1, 0.08);
}

TEST(WhatIfTest, RankingIsByGainAndSaysWhatWasAssumed) {
  const auto ranking = rank_what_ifs(request_of("resnet50", 64), {}, whatif_cost_models());
  ASSERT_TRUE(ranking.ok()) << ranking.error().message();
  ASSERT_GE(ranking->size(), 5U);
  for (size_t i = 1; i < ranking->size(); ++i) EXPECT_GE((*ranking)[i - 1].gain(), (*ranking)[i].gain());
  for (const WhatIfAnswer& answer : *ranking) EXPECT_FALSE(answer.assumptions.empty()) << answer.applied.front();
  EXPECT_NE(to_text(*ranking).find("assumed"), std::string::npos);
}

double predicted_with(const ModelRequest& request, const std::vector<std::string>& applications) {
  WhatIfQuestion question;
  question.applications = *whatif::parse_applications(applications);
  const auto answer = what_if(request, question, whatif_cost_models());
  EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message());
  if (!answer.ok()) return 0;
  EXPECT_FALSE(answer->assumptions.empty());
  return answer->predicted_ms;
}

TEST(WhatIfTest, OptimizationsMoveWhatTheyShould) {
  const ModelRequest gpu_bound = request_of("resnet50", 256), host_bound = request_of("resnet50", 4);
  const double large = predicted_with(gpu_bound, {"batch:factor=1"}),
               small = predicted_with(host_bound, {"batch:factor=1"});
  EXPECT_LT(predicted_with(gpu_bound, {"restructured_batch_norm"}), 0.95 * large);
  const double fused = predicted_with(gpu_bound, {"fusion"});
  EXPECT_LT(fused, large);
  EXPECT_LT(predicted_with(gpu_bound, {"fusion:epilogues=1"}), 0.98 * fused);  // norm + ReLU
  EXPECT_GT(predicted_with(gpu_bound, {"gpu:name=a100_80gb"}), 1.3 * large);
  EXPECT_NEAR(predicted_with(gpu_bound, {"gpu:name=h200"}), large, 0.01 * large);
  EXPECT_NEAR(predicted_with(gpu_bound, {"cuda_graphs"}), large, 0.05 * large);
  EXPECT_LT(predicted_with(host_bound, {"cuda_graphs"}), 0.5 * small);
  // These give time for memory; a checkpointed forward pass is about a third of the work.
  EXPECT_GT(predicted_with(gpu_bound, {"gist"}), large);
  const double recomputed = predicted_with(gpu_bound, {"checkpointing:segments=1000"}) / large;
  EXPECT_GT(recomputed, 1.2);
  EXPECT_LT(recomputed, 1.5);
  EXPECT_NEAR(predicted_with(gpu_bound, {"checkpointing:segments=1"}), large, 0.01 * large);
  EXPECT_GT(predicted_with(gpu_bound, {"vdnn:gb_per_s=10"}), 1.5 * large);
  EXPECT_NEAR(predicted_with(gpu_bound, {"vdnn:gb_per_s=1e6"}), large, 0.02 * large);
  EXPECT_LT(predicted_with(gpu_bound, {"metaflow:remove=layer4"}), large);
  // Composition: both at once bring more than either.
  const double both = predicted_with(host_bound, {"fused_adam", "cuda_graphs"});
  EXPECT_LT(both, predicted_with(host_bound, {"fused_adam"}));
  EXPECT_LE(both, predicted_with(host_bound, {"cuda_graphs"}));
}

// The same training before and after a change of its DataLoader, as PyTorch's own tutorial recorded it: 152 to 176 ms with
// none, 116 to 127 ms (the usual step) with four workers.
TEST(WhatIfTest, FasterDataLoadingIsWhatWasMeasured) {
  NEEDS_DATASET(folder, "traces/kineto/resnet50_num_workers_0");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto trace = read_kineto(entry.path().string());
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    WhatIfQuestion question;
    question.applications = *whatif::parse_applications({"data_loading:workers=4"});
    question.unprofiled = false;
    const auto answer = what_if(*trace, question, whatif_cost_models());
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    EXPECT_NEAR(answer->predicted_ms, 125, 12) << entry.path();
  }
}

// A board that the catalogue does not have is no other whose name begins alike.
TEST(WhatIfTest, TheTracesGpuIsTakenForOneOfItsModel) {
  auto trace = read_kineto(FORERUN_DATA_DIR "/h200/whatif_traces/resnet50.base.trace.json.zst");
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  const auto taken_for = [&](const std::string& name) -> std::string {
    trace->gpu = name;
    const auto base = base_iteration(*trace, {}, whatif_cost_models());
    EXPECT_TRUE(base.ok());
    return base.ok() && base->timer != nullptr ? base->timer->device().name : "";
  };
  EXPECT_NE(taken_for("Tesla V100-DGXS-32GB").find("V100"), std::string::npos);
  EXPECT_NE(taken_for("NVIDIA H100 NVL").find("H100"), std::string::npos);
  EXPECT_EQ(taken_for("NVIDIA H20"), "NVIDIA H20") << "not an H200";
  EXPECT_EQ(taken_for("NVIDIA A10"), "NVIDIA A10") << "not an A100";
  EXPECT_EQ(taken_for("NVIDIA X9-SXM4-80GB"), "") << "a connector tells nothing";
}

TEST(WhatIfTest, ATraceWithoutAGpusWorkIsRefused) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "cpu_only.json";
  const char* op = R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": %d, "dur": 10})";
  std::string events;
  for (int i = 0; i < 3; ++i) {
    events +=
        std::string(i == 0 ? "" : ",") + std::string(op).replace(std::string(op).find("%d"), 2, std::to_string(20 * i));
  }
  ASSERT_TRUE(write_whole_file(file.string(), "{\"traceEvents\": [" + events + "]}").ok());
  const auto trace = read_kineto(file.string());
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  const auto base = base_iteration(*trace, {}, whatif_cost_models());
  ASSERT_FALSE(base.ok());
  EXPECT_NE(base.error().message().find("ProfilerActivity.CUDA"), std::string::npos) << base.error().message();
}

TEST(WhatIfTest, UnknownNamesAreAnsweredWithTheKnownOnes) {
  const auto applications = whatif::parse_applications({"amp", "fused_adm"});
  ASSERT_FALSE(applications.ok());
  EXPECT_NE(applications.error().message().find("fused_adam"), std::string::npos);
}

}  // namespace
}  // namespace forerun
