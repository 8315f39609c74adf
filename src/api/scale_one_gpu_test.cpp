// What `scale` says of one GPU is what `predict` says, eager and compiled; and replicas of compiled models.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/scaled_model.h"
#include "api/test_scale.h"
#include "base/test_rounds.h"
#include "predict/predict.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

// On one GPU `scale` and `predict` say the same: time within 0.5 %, memory to the byte.
void expect_one_answer(const ModelRequest& request, const std::string& gpu_name) {
  const Device gpu = *scale_cost_models().devices.find(gpu_name);
  ScaleQuestion question{.model = request.model, .settings = request.settings, .gpu = gpu_name, .gpus = {1}};
  question.micro_batch = request.batch.value_or(0);
  question.setup = request.setup;
  question.default_precision = false;
  question.default_optimizer = request.default_optimizer;
  const auto run = build_run(request, gpu);
  ASSERT_TRUE(run.ok()) << request.model << ": " << run.error().message();
  const Prediction prediction = predict(*run, gpu, scale_cost_models());
  const scale::Step step = answer_to(question).steps.front();
  const std::string what = fmt::format("{} on {} in {}", request.model, gpu_name, name_of(request.setup.precision));
  EXPECT_NEAR(milliseconds(step.time) / milliseconds(prediction.times.iteration), 1, 0.005) << what;
  EXPECT_EQ(step.memory.total(), prediction.memory.peak_reserved + prediction.context) << what;
  EXPECT_EQ(step.fits, prediction.fits) << what;
  EXPECT_NEAR(milliseconds(step.low) / milliseconds(prediction.p10), 1, 0.005) << what;
  EXPECT_NEAR(milliseconds(step.high) / milliseconds(prediction.p90), 1, 0.005) << what;
  for (size_t i = 0; i < TimeParts::kCount; ++i) {
    const auto [name, time] = step.parts.named()[i];
    EXPECT_NEAR(milliseconds(time), milliseconds(prediction.parts.named()[i].second),
                0.005 * milliseconds(prediction.times.iteration))
        << what << ": " << name;
  }
  if (request.setup.checkpointing == Checkpointing::none) {
    EXPECT_NEAR(step.efficiency, 1, 1e-3) << what;
  }
}

TEST(Scale, OneGpuIsWhatPredictSays) {
  for (const char* model : {"resnet50", "mobilenet_v2", "vit_b_16", "lstm", "dlrm", "gpt2_small", "bert_base",
                            "t5_small", "opt-125m", "Qwen/Qwen3-0.6B", "unet"}) {
    expect_one_answer({.model = model}, "h200");
    ModelRequest half{.model = model, .batch = 16};
    half.setup.precision = Precision::amp_bf16;
    expect_one_answer(half, "a100");
  }
}

// Every model of the zoo by its name, at a small batch, one in three a run under the sanitizers.
TEST(Scale, OneGpuIsWhatPredictSaysOverTheZoo) {
  size_t number = 0;
  for (const zoo::NamedModel& model : zoo::models()) {
    if (++number % (test_rounds(30) < 30 ? 3 : 1) != 0) continue;
    ModelRequest request{.model = model.name, .batch = 2};
    request.setup.precision = Precision::amp_bf16;
    expect_one_answer(request, "h200");
  }
  EXPECT_GT(number, 50U);
}

TEST(Scale, OneGpuIsWhatPredictSaysOfOtherSetups) {
  for (const Precision precision : {Precision::tf32, Precision::amp_fp16, Precision::bf16, Precision::fp16}) {
    ModelRequest request{.model = "gpt2_small", .batch = 4};
    request.setup.precision = precision;
    expect_one_answer(request, "h100");
  }
  for (const char* model : {"gpt2_small", "bert_large", "Qwen/Qwen3-0.6B"}) {
    ModelRequest narrow{.model = model, .batch = 8};
    narrow.setup.precision = Precision::amp_fp8;
    expect_one_answer(narrow, "h200");
    narrow.setup.checkpointing = Checkpointing::block;
    expect_one_answer(narrow, "h100");
  }
  ModelRequest request{.model = "gpt2_small", .batch = 4, .default_optimizer = false};
  request.setup.optimizer.kind = OptimizerKind::adam;
  request.setup.optimizer.impl = OptimizerImpl::fused;
  request.setup.attention = Attention::eager;
  expect_one_answer(request, "a100");
  for (const Checkpointing checkpointing : {Checkpointing::block, Checkpointing::selective}) {
    request.setup.checkpointing = checkpointing;
    expect_one_answer(request, "a100");
  }
}

// Micro-batches whose gradients are added up: the first and the further ones, up to more than are derived.
TEST(Scale, OneGpuIsWhatPredictSaysOfSeveralMicroBatches) {
  for (const char* model : {"resnet50", "gpt2_small", "dlrm_kaggle", "lstm"}) {
    for (const int64_t accumulate : {2, 3, 8, 24}) {
      SCOPED_TRACE(accumulate);
      ModelRequest request{.model = model, .batch = 4};
      request.setup.accumulate = accumulate;
      expect_one_answer(request, "h200");
    }
  }
  ModelRequest request{.model = "gpt2_small", .batch = 8};
  request.setup.accumulate = 4;
  request.setup.precision = Precision::amp_bf16;
  for (const Checkpointing checkpointing : {Checkpointing::block, Checkpointing::selective}) {
    request.setup.checkpointing = checkpointing;
    expect_one_answer(request, "a100");
  }
  request.setup.checkpointing = Checkpointing::none;
  request.setup.compile = CompileMode::standard;
  expect_one_answer(request, "h200");
  request.model = "resnet50";
  expect_one_answer(request, "h200");
}

// Replicas add up gradients too.
TEST(Scale, ReplicasAddUpGradientsAsOneGpuDoes) {
  ScaleQuestion question{.model = "gpt2_small", .gpu = "a100", .gpus = {1, 8}, .micro_batch = 4};
  question.setup.accumulate = 6;
  const ScaleAnswer answer = answer_to(question);
  ASSERT_EQ(answer.steps.size(), 2U);
  EXPECT_NEAR(milliseconds(answer.steps[1].compute) / milliseconds(answer.steps[0].compute), 1, 0.005);
  question.setup.accumulate = 1;
  EXPECT_GT(answer.steps[0].compute, answer_to(question).steps[0].compute * 6);
  EXPECT_NEAR(answer.steps[0].efficiency, 1, 1e-3);
}

// A compiled model is the one that `predict` sees compiled, in every mode.
TEST(Scale, OneGpuIsWhatPredictSaysOfCompiledModels) {
  for (const char* model : {"resnet50", "mobilenet_v2", "vit_b_16", "gpt2_small", "bert_base", "Qwen/Qwen3-0.6B"}) {
    for (const CompileMode mode : {CompileMode::standard, CompileMode::reduce_overhead, CompileMode::max_autotune,
                                   CompileMode::autotune_without_graphs}) {
      SCOPED_TRACE(name_of(mode));
      ModelRequest request{.model = model, .batch = 4};
      request.setup.compile = mode;
      request.setup.precision = Precision::amp_bf16;
      expect_one_answer(request, "h200");
      if (mode != CompileMode::standard) continue;
      request.setup.precision = Precision::fp32;
      expect_one_answer(request, "a100");
    }
  }
}

// Replicas of a compiled model compute what one does, and exchange what replicas of the eager one do.
TEST(Scale, ReplicasOfCompiledModels) {
  for (const char* model : {"resnet50", "gpt2_small", "Qwen/Qwen3-0.6B"}) {
    ScaleQuestion question{
        .model = model, .gpu = "a100", .gpus = {1, 8, 16}, .micro_batch = 8, .default_precision = false};
    question.setup.precision = Precision::amp_bf16;
    for (const char* strategy : {"dp", "zero1", "zero2", "fsdp", "hsdp"}) {
      SCOPED_TRACE(fmt::format("{} {}", model, strategy));
      question.strategy = strategy;
      question.setup.compile = CompileMode::none;
      const ScaleAnswer eager = answer_to(question);
      question.setup.compile = CompileMode::standard;
      const ScaleAnswer compiled = answer_to(question);
      ASSERT_EQ(compiled.steps.size(), 3U);
      EXPECT_EQ(compiled.compile, CompileMode::standard);
      const scale::Step& one = compiled.steps[0];
      EXPECT_TRUE(one.unvalidated.empty());
      for (const size_t i : {1, 2}) {
        const scale::Step& step = compiled.steps[i];
        EXPECT_NEAR(milliseconds(step.compute) / milliseconds(one.compute), 1, 1e-6);
        EXPECT_GE(step.time, one.compute);
        EXPECT_LT(step.compute, eager.steps[i].compute);
        if (step.plan.zero < 3) {  // which is exchanged block by block
          EXPECT_NEAR(milliseconds(step.exchange) / milliseconds(eager.steps[i].exchange), 1, 0.05);
        }
        EXPECT_FALSE(step.unvalidated.empty());
        // Masks that a compiled model is handed take as much as on one GPU; activations are the compiled one's.
        const scale::MemoryUse &memory = step.memory, &beside = eager.steps[i].memory;
        EXPECT_EQ(memory.parameters - beside.parameters, one.memory.parameters - eager.steps[0].memory.parameters);
        const double small = 1.0 / 1024;  // a MiB: blocks of the allocator, in which shards lie in another order
        EXPECT_NEAR(gibibytes(memory.states), gibibytes(beside.states), 0.03 * gibibytes(beside.states) + small);
        EXPECT_LT(memory.activations.value, 1.1 * static_cast<double>(beside.activations.value));
      }
    }
  }
}

// A search among replicas alone.
TEST(Scale, SearchesPlansOfACompiledModel) {
  ScaleQuestion question{.model = "gpt2_medium",
                         .gpu = "a100",
                         .gpus = {16},
                         .search = true,
                         .global_batch = 64,
                         .default_precision = false};
  question.setup.precision = Precision::amp_bf16;
  question.setup.compile = CompileMode::standard;
  const ScaleAnswer answer = answer_to(question);
  ASSERT_FALSE(answer.steps.empty());
  for (const scale::Step& step : answer.steps)
    EXPECT_EQ(step.plan.tensor * step.plan.pipeline, 1) << describe(step.plan);
  question.megatron = true;
  EXPECT_FALSE(scale_out(question, scale_cost_models()));
}

}  // namespace
}  // namespace forerun
