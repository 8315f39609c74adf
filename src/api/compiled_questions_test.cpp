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
    EXPECT_EQ(changed->predicted_ms, milliseconds(beside.times.iteration));
    EXPECT_EQ(changed->predicted_gpu_ms, milliseconds(beside.times.gpu_busy));
    EXPECT_EQ(changed->low_ms, milliseconds(beside.p10));
    EXPECT_EQ(changed->high_ms, milliseconds(beside.p90));
  }
}

// Whichever is applied first, it is the run that `predict` has with both.
TEST(CompiledQuestions, WhatIfDoesNotGoByTheOrder) {
  ModelRequest both = small(CompileMode::standard);
  both.setup.optimizer.kind = OptimizerKind::adamw;
  both.setup.optimizer.weight_decay = 0.01;
  both.setup.optimizer.impl = OptimizerImpl::fused;
  both.default_optimizer = false;
  const auto told = predict({.model = both, .remedies = false, .eager_beside = false}, costs());
  ASSERT_TRUE(told.ok()) << told.error().message();
  for (const auto& order : {std::vector<std::string>{"compile", "fused_adam"}, {"fused_adam", "compile"}}) {
    const WhatIfQuestion question{.applications = *whatif::parse_applications(order), .gpu = ""};
    const auto answer = what_if(small(CompileMode::none), question, costs());
    ASSERT_TRUE(answer.ok()) << answer.error().message();
    EXPECT_EQ(answer->predicted_ms, milliseconds(told->prediction.times.iteration)) << order.front();
    const auto tasks = base_iteration(small(CompileMode::none), question, costs());
    ASSERT_TRUE(tasks.ok());
    whatif::EditableIteration edited = tasks->edited;
    for (const auto& one : question.applications) {
      ASSERT_TRUE(one.optimization->apply(edited, one.parameters).ok());
    }
    EXPECT_NEAR(milliseconds(*edited.iteration_time()), answer->predicted_ms, 0.02 * answer->predicted_ms);
  }
}

// Zeroing gradients costs the host what it costs, behind whatever the update is rewritten.
TEST(CompiledQuestions, WhatIsNoOpsStaysWhereTheUpdateIsRewritten) {
  ModelRequest model = small(CompileMode::none, 1);
  const auto asked = [&](const std::vector<std::string>& applied) {
    const WhatIfQuestion question{.applications = *whatif::parse_applications(applied), .gpu = ""};
    const auto answer = what_if(model, question, costs());
    EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message());
    return answer.ok() ? answer->predicted_ms : 0;
  };
  const double usual = asked({"fused_adam", "faster_kernel:match=softmax,factor=1.0001"});
  EXPECT_NEAR(asked({"faster_kernel:match=softmax,factor=1.0001", "fused_adam"}), usual, 0.03 * usual);
}

TEST(CompiledQuestions, WhatIfRefusesCheckpointingAndASecondCompile) {
  for (const auto& applied :
       {std::vector<std::string>{"compile", "checkpointing"}, {"compile", "compile:mode=reduce-overhead"}}) {
    const WhatIfQuestion question{.applications = *whatif::parse_applications(applied), .gpu = ""};
    EXPECT_FALSE(what_if(small(CompileMode::none), question, costs()).ok()) << applied.back();
  }
  const WhatIfQuestion question{.applications = *whatif::parse_applications({"compile"}), .gpu = ""};
  const auto ranking = rank_what_ifs(small(CompileMode::none), question, costs());
  ASSERT_TRUE(ranking.ok()) << ranking.error().message();
  for (const WhatIfAnswer& answer : *ranking) {
    EXPECT_NE(answer.applied.back(), "compile");
    EXPECT_NE(answer.applied.back(), "checkpointing");
  }
}

// Triton has no kernels for Pascal: those are told apart, and the others are answered.
TEST(CompiledQuestions, GpusThatTritonRefusesAreRefused) {
  ModelRequest wide = small(CompileMode::standard);
  wide.setup.precision = Precision::fp32;
  const auto alone = predict({.model = wide, .gpu = "p100", .remedies = false}, costs());
  ASSERT_FALSE(alone.ok());
  EXPECT_NE(alone.error().message().find("Volta"), std::string::npos) << alone.error().message();
  const auto rows = compare_gpus({.model = wide, .gpus = {"p100", "v100", "mi300x"}}, costs());
  ASSERT_TRUE(rows.ok()) << rows.error().message();
  for (const CompareRow& row : rows->rows) {
    EXPECT_EQ(row.prediction.ok(), row.short_name.find("p100") == std::string::npos) << row.gpu;
    EXPECT_EQ(row.largest_batch.has_value(), row.prediction.ok()) << row.gpu;
  }
  EXPECT_EQ(rows->same_error(), nullptr);
  const auto none = compare_gpus({.model = wide, .gpus = {"p100"}}, costs());
  ASSERT_TRUE(none.ok());
  ASSERT_NE(none->same_error(), nullptr);
  EXPECT_NE(none->same_error()->remedy.find("--compile"), std::string::npos);
  const WhatIfQuestion question{.applications = *whatif::parse_applications({"compile", "gpu:name=p100"}), .gpu = ""};
  wide.setup.compile = CompileMode::none;
  EXPECT_FALSE(what_if(wide, question, costs()).ok());
}

TEST(CompiledQuestions, FlashKernelsAreRefusedOfModelsThatPassAMask) {
  ModelRequest flash = small(CompileMode::standard);
  flash.setup.attention = Attention::flash;
  const auto refused = predict({.model = flash, .remedies = false}, costs());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("mask"), std::string::npos) << refused.error().message();
  flash.setup.compile = CompileMode::none;
  EXPECT_TRUE(predict({.model = flash, .remedies = false}, costs()).ok());
  const WhatIfQuestion question{.applications = *whatif::parse_applications({"compile"}), .gpu = ""};
  EXPECT_FALSE(what_if(flash, question, costs()).ok());
}

TEST(CompiledQuestions, JobsAndMemoryAreOfTheCompiledRunToo) {
  PredictRequest request{.model = small(CompileMode::standard), .remedies = false, .memory_log = true};
  request.job.iterations = 1000;
  const auto answer = predict(request, costs());
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_TRUE(answer->prediction.job && answer->compiled->prediction.job);
  EXPECT_LT(answer->compiled->prediction.job->hours, answer->prediction.job->hours);
  ASSERT_TRUE(answer->memory_log && answer->compiled->memory_log);
  EXPECT_LT(answer->compiled->memory_log->graph.op_count(), answer->memory_log->graph.op_count());
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
