// A compiled model is one run, whoever asks about it: predict, fit, sweep, compare and what-ifs answer alike.
#include <gtest/gtest.h>

#include "api/compare.h"
#include "api/fit.h"
#include "api/predict.h"
#include "api/sweep.h"
#include "api/whatif.h"

namespace forerun {
namespace {

const CostModels& costs() {
  static const CostModels cost_models = [] {
    auto loaded = load_cost_models();
    EXPECT_TRUE(loaded.ok()) << loaded.error().message();
    return loaded.ok() ? std::move(*loaded) : CostModels{};
  }();
  return cost_models;
}

ModelRequest small(CompileMode mode, int64_t batch = 8) {
  ModelRequest request{.model = "gpt2_small", .batch = batch};
  request.settings = {{"layers", "2"}, {"length", "256"}};
  request.setup.precision = Precision::amp_bf16;
  request.setup.compile = mode;
  return request;
}

CompiledPrediction compiled(CompileMode mode, int64_t batch = 8) {
  auto answer = predict({.model = small(mode, batch), .remedies = false}, costs());
  EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message());
  return *answer->compiled;
}

constexpr CompileMode kModes[] = {CompileMode::standard, CompileMode::reduce_overhead, CompileMode::max_autotune,
                                  CompileMode::autotune_without_graphs};

TEST(CompiledQuestions, AllGiveTheSameIteration) {
  for (const CompileMode mode : kModes) {
    SCOPED_TRACE(name_of(mode));
    const Prediction beside = compiled(mode).prediction;
    const auto alone = predict({.model = small(mode), .remedies = false, .eager_beside = false}, costs());
    ASSERT_TRUE(alone.ok()) << alone.error().message();
    EXPECT_EQ(alone->prediction.times.iteration, beside.times.iteration);
    EXPECT_EQ(alone->prediction.memory.peak_reserved, beside.memory.peak_reserved);
    EXPECT_FALSE(alone->compiled.has_value());

    SweepRequest over{.base = small(CompileMode::none), .axes = {{"compile", {std::string(name_of(mode))}}}};
    const auto cases = sweep_cases(over, costs());
    ASSERT_TRUE(cases.ok()) << cases.error().message();
    const auto swept = predict_case((*cases)[0], costs());
    ASSERT_TRUE(swept.ok()) << swept.error().message();
    EXPECT_EQ(swept->times.iteration, beside.times.iteration);
    EXPECT_EQ(swept->p90, beside.p90);

    const auto rows = compare_gpus({.model = small(mode), .gpus = {"h200", "t4"}}, costs());
    ASSERT_TRUE(rows.ok()) << rows.error().message();
    for (const CompareRow& row : rows->rows) {
      if (row.short_name != "h200") continue;
      ASSERT_TRUE(row.prediction.ok());
      EXPECT_EQ(row.prediction->times.iteration, beside.times.iteration);
      EXPECT_EQ(row.prediction->memory.peak_reserved, beside.memory.peak_reserved);
    }

    const std::string apply = "compile:mode=" + std::string(name_of(mode));
    const WhatIfQuestion question{.applications = *whatif::parse_applications({apply}), .gpu = ""};
    const auto changed = what_if(small(CompileMode::none), question, costs());
    ASSERT_TRUE(changed.ok()) << changed.error().message();
    EXPECT_NEAR(changed->predicted_ms, milliseconds(beside.times.iteration), 0.01 * changed->predicted_ms);
    EXPECT_LT(changed->low_ms, changed->predicted_ms);
  }
}

// `scale` refuses the graphs too, and has ZeRO 3 block by block.
TEST(CompiledQuestions, WhatIfRefusesExchangesThatItCannotTell) {
  const auto asked = [](std::string compile, std::string exchange) {
    const WhatIfQuestion question{.applications = *whatif::parse_applications({compile, exchange}), .gpu = ""};
    return what_if(small(CompileMode::none), question, costs());
  };
  EXPECT_TRUE(asked("compile", "ddp:workers=8").ok());
  EXPECT_TRUE(asked("compile", "zero:stage=2,workers=8").ok());
  const auto graphs = asked("compile:mode=reduce-overhead", "ddp:workers=8");
  ASSERT_FALSE(graphs.ok());
  EXPECT_NE(graphs.error().message().find("CUDA graphs"), std::string::npos) << graphs.error().message();
  const auto blocks = asked("compile", "zero:stage=3,workers=8");
  ASSERT_FALSE(blocks.ok());
  EXPECT_NE(blocks.error().message().find("--strategy fsdp"), std::string::npos) << blocks.error().message();
}

TEST(CompiledQuestions, FitGoesByTheCompiledIterationAndItsRange) {
  FitRequest request{.model = small(CompileMode::standard), .changes = false};
  const Device device = *asked_gpu("t4", costs());
  request.model.setup.precision = Precision::fp32;
  request.model.batch.reset();
  const auto answer = fit(request, device, costs());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_TRUE(answer->largest.has_value());
  EXPECT_EQ(answer->at.setup.compile, CompileMode::standard);
  EXPECT_GE(answer->margin, costs().compile.allocated.high - 1);
  request.model.setup.compile = CompileMode::none;
  const auto eager = fit(request, device, costs());
  ASSERT_TRUE(eager.ok());
  EXPECT_NE(*eager->largest, *answer->largest);
}

TEST(CompiledQuestions, CudaGraphsTakeTheHostAwayAndKeepTheirMemory) {
  const CompiledPrediction plain = compiled(CompileMode::standard, 1);
  const CompiledPrediction graphs = compiled(CompileMode::reduce_overhead, 1);
  EXPECT_LT(graphs.prediction.times.host_busy, plain.prediction.times.host_busy);
  EXPECT_LT(graphs.prediction.times.iteration, plain.prediction.times.iteration);
  EXPECT_GT(graphs.prediction.memory.peak_reserved, plain.prediction.memory.peak_reserved);
  // Never measured: wider on both sides.
  const auto width = [](const Prediction& p) {
    return static_cast<double>(p.p90.value) / static_cast<double>(p.p10.value);
  };
  EXPECT_GT(width(graphs.prediction), width(plain.prediction));
}

TEST(CompiledQuestions, TunedProductsTakeInWhatReadsThem) {
  const CompiledPrediction plain = compiled(CompileMode::standard);
  const CompiledPrediction tuned = compiled(CompileMode::autotune_without_graphs);
  EXPECT_GT(tuned.templates, 0);
  EXPECT_EQ(plain.templates, 0);
  EXPECT_LE(tuned.prediction.times.gpu_busy, plain.prediction.times.gpu_busy);
  EXPECT_EQ(tuned.pointwise + tuned.templates, plain.pointwise);
  EXPECT_FALSE(tuned.compile_s.has_value());
}

TEST(CompiledQuestions, OnAGpuThatWasNeverMeasuredTheRangeIsWider) {
  const ModelRequest model = small(CompileMode::standard, 128);  // the GPU bounds both
  const auto width = [&](const char* gpu) {
    const auto answer = predict({.model = model, .gpu = gpu, .remedies = false, .eager_beside = false}, costs());
    EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message());
    return static_cast<double>(answer->prediction.p90.value) / static_cast<double>(answer->prediction.p10.value);
  };
  EXPECT_GT(width("a100"), width("h200"));
}

}  // namespace
}  // namespace forerun
