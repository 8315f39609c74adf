#include "api/scale.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "api/scale_records.h"
#include "api/scale_resources.h"
#include "api/scaled_costs.h"
#include "api/test_scale.h"
#include "base/needs_dataset.h"
#include "base/test_rounds.h"
#include "cost/collective/link_name.h"
#include "predict/predict.h"
#include "report/scale.h"
#include "report/scale_resources.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

TEST(Scale, AnswersForGpt3On512Gpus) {
  const ScaleAnswer answer = answer_to(
      {.model = "gpt3_175b", .gpu = "a100", .gpus = {512}, .search = true, .global_batch = 1536, .megatron = true});
  EXPECT_GT(answer.feasible, 50);
  EXPECT_GT(answer.too_large, 50);
  EXPECT_EQ(answer.feasible, static_cast<int64_t>(answer.steps.size()));
  for (const scale::Step& step : answer.steps) EXPECT_LE(step.memory.total(), answer.device_memory);
  EXPECT_GT(answer.steps.front().plan.tensor * answer.steps.front().plan.pipeline, 8);
  EXPECT_EQ(to_json(answer), to_json(answer_to({.model = "gpt3_175b",
                                                .gpu = "a100",
                                                .gpus = {512},
                                                .search = true,
                                                .global_batch = 1536,
                                                .megatron = true})));
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

// What a search says of the plans that it puts first is what is said of them when they are asked for.
TEST(Scale, SearchAndPlanGiveOneAnswer) {
  ScaleQuestion question{
      .model = "gpt2_medium", .gpu = "a100", .gpus = {8}, .global_batch = 64, .default_precision = false};
  question.setup.precision = Precision::amp_bf16;
  question.search = true;
  const ScaleAnswer found = answer_to(question);
  ASSERT_GT(found.steps.size(), 10U);
  question.search = false;
  for (size_t i = 0; i < 10; ++i) {
    const scale::Plan& plan = found.steps[i].plan;
    question.strategy =
        fmt::format("tp={},pp={},chunks={},zero={},mb={}{}{}", plan.tensor, plan.pipeline, plan.chunks, plan.zero,
                    plan.micro_batch, plan.checkpoint ? ",checkpoint" : "", plan.sequence ? ",sp" : "");
    const scale::Step asked = answer_to(question).steps.front();
    EXPECT_EQ(asked.time, found.steps[i].time) << question.strategy;
    EXPECT_EQ(asked.memory.total(), found.steps[i].memory.total()) << question.strategy;
  }
}

// Groups of every kind, of a model with experts: the same samples, each GPU with its part of the weights.
TEST(Scale, ExpertsAreDealtOut) {
  ScaleQuestion question{.model = "Mixtral-8x7B-v0.1",
                         .settings = {{"layers", "4"}, {"length", "1024"}},
                         .gpu = "h100",
                         .gpus = {16},
                         .strategy = "dp",
                         .global_batch = 32,
                         .micro_batch = 1,
                         .default_precision = false};
  question.setup.precision = Precision::bf16;
  const auto asked = [&](const char* strategy) {
    question.strategy = strategy;
    return answer_to(question).steps.front();
  };
  const scale::Step whole = asked("dp");
  const scale::Step dealt = asked("ep=8");
  EXPECT_LT(dealt.memory.parameters.value, whole.memory.parameters.value / 3);
  EXPECT_GT(dealt.tensor_exchange, Nanoseconds());
  EXPECT_LT(dealt.exchange, whole.exchange);
  EXPECT_NEAR(dealt.model_flops_share * static_cast<double>(dealt.time.value) /
                  (whole.model_flops_share * static_cast<double>(whole.time.value)),
              1, 0.01);  // of the same products
  const scale::Step shared = asked("tp=2,ep=4");
  EXPECT_LT(shared.memory.parameters.value, whole.memory.parameters.value / 3);
  EXPECT_NEAR(shared.model_flops_share * static_cast<double>(shared.time.value) /
                  (whole.model_flops_share * static_cast<double>(whole.time.value)),
              1, 0.02);
  EXPECT_TRUE(answer_to(question).steps.front().fits);
}

TEST(Scale, ContextGroupsTrainTheSameTokens) {
  ScaleQuestion question{.model = "llama3_8b",
                         .settings = {{"layers", "4"}, {"length", "8192"}},
                         .gpu = "h100",
                         .gpus = {8},
                         .strategy = "dp",
                         .global_batch = 8,
                         .micro_batch = 1,
                         .default_precision = false};
  question.setup.precision = Precision::bf16;
  const scale::Step whole = answer_to(question).steps.front();
  question.strategy = "cp=4";
  const scale::Step divided = answer_to(question).steps.front();
  const auto tokens = [](const scale::Step& step) {
    return step.tokens_per_second * static_cast<double>(step.time.value) * 1e-9;
  };
  EXPECT_NEAR(tokens(divided), tokens(whole), 1);
  EXPECT_LT(divided.memory.activations.value, whole.memory.activations.value / 2);
  EXPECT_NEAR(divided.model_flops_share * static_cast<double>(divided.time.value) /
                  (whole.model_flops_share * static_cast<double>(whole.time.value)),
              1, 0.01);
  EXPECT_NEAR(static_cast<double>(divided.compute.value) / static_cast<double>(whole.compute.value), 1, 0.3);
}

TEST(Scale, APlanIsHeldAgainstTheBest) {
  ScaleQuestion question{.model = "gpt2_medium",
                         .gpu = "a100",
                         .gpus = {8},
                         .search = true,
                         .explain = "pp=8",
                         .picture = true,
                         .global_batch = 64};
  const ScaleAnswer answer = answer_to(question);
  ASSERT_TRUE(answer.explained);
  EXPECT_EQ(answer.explained->plan.pipeline, 8);
  EXPECT_GT(answer.explained->time, answer.steps.front().time);
  ASSERT_TRUE(answer.picture);
  EXPECT_FALSE(answer.picture->events.empty());
  question.explain = "zero1";
  EXPECT_EQ(answer_to(question).explained->plan.zero, 1);
}

TEST(Scale, AnOversubscribedNetworkIsSlower) {
  ScaleQuestion question{.model = "gpt2_medium", .gpu = "a100", .gpus = {32}, .network = "25gbe", .micro_batch = 4};
  const Nanoseconds full = answer_to(question).steps.front().time;
  question.oversubscription = 4;
  EXPECT_GT(answer_to(question).steps.front().time, full);
}

TEST(Scale, SearchesForEachNumberOfGpus) {
  const ScaleAnswer answer = answer_to({.model = "gpt3_175b",
                                        .gpu = "a100",
                                        .gpus = {8, 128, 512},
                                        .search = true,
                                        .global_batch = 1536,
                                        .megatron = true});
  ASSERT_EQ(answer.steps.size(), 2);  // eight cannot hold it
  EXPECT_NE(answer.assumptions.front().find("no plan fits on 8 GPUs"), std::string::npos);
  EXPECT_EQ(answer.steps[0].plan.gpus(), 128);
  EXPECT_LT(answer.steps[1].time, answer.steps[0].time);
}

// A Hopper GPU that products keep busy is slower beside others than alone, whatever is asked together.
TEST(Scale, OneGpuAndManyAreAskedTogetherOrApart) {
  ScaleQuestion question{.model = "meta-llama/Llama-3.1-8B", .gpu = "h100", .gpus = {1, 8}, .micro_batch = 8};
  question.setup.precision = Precision::amp_bf16;
  question.default_precision = false;
  const ScaleAnswer together = answer_to(question);
  ASSERT_EQ(together.steps.size(), 2);
  EXPECT_GT(milliseconds(together.steps[1].compute), 1.1 * milliseconds(together.steps[0].compute));
  for (const size_t i : {0, 1}) {
    question.gpus = {i == 0 ? 1 : 8};
    EXPECT_EQ(answer_to(question).steps.front().time, together.steps[i].time);
  }
}

// The network that nobody names is that of the vendor's machine, and said where it counts.
TEST(Scale, TheUsualNetworkIsAssumedAndSaid) {
  const auto says = [](const ScaleAnswer& answer, const char* what) {
    return std::any_of(answer.assumptions.begin(), answer.assumptions.end(),
                       [&](const std::string& line) { return line.find(what) != std::string::npos; });
  };
  for (const auto& [gpu, network, machine] :
       {std::tuple("h100", "8xndr", "a DGX H100"), std::tuple("a100", "8xhdr", "a DGX A100")}) {
    ScaleQuestion question{.model = "gpt2_small", .gpu = gpu, .gpus = {16}, .micro_batch = 8};
    const ScaleAnswer usual = answer_to(question);
    EXPECT_TRUE(says(usual, machine)) << gpu;
    question.network = network;
    const ScaleAnswer named = answer_to(question);
    EXPECT_FALSE(says(named, "nodes are joined by")) << gpu;
    EXPECT_EQ(named.steps[0].time, usual.steps[0].time) << gpu;
    EXPECT_EQ(named.between, usual.between) << gpu;
    question.network.reset();
    question.gpus = {8};
    EXPECT_FALSE(says(answer_to(question), "nodes are joined by")) << gpu;
  }
}

// Long sequences, many nodes: what a search has besides.
TEST(Scale, SearchDividesLongSequencesAndShardsWithinNodes) {
  ScaleQuestion question{.model = "llama3_8b",
                         .settings = {{"layers", "4"}, {"length", "32768"}},
                         .gpu = "h100",
                         .gpus = {16},
                         .search = true,
                         .global_batch = 16,
                         .megatron = true,
                         .default_precision = false};
  question.setup.precision = Precision::bf16;
  const auto any = [](const ScaleAnswer& answer, auto is) {
    return std::any_of(answer.steps.begin(), answer.steps.end(), [&](const scale::Step& s) { return is(s.plan); });
  };
  const ScaleAnswer megatron = answer_to(question);
  EXPECT_TRUE(any(megatron, [](const scale::Plan& plan) { return plan.context == 4; }));
  EXPECT_FALSE(any(megatron, [](const scale::Plan& plan) { return plan.context > 4; }));
  EXPECT_TRUE(any(megatron, [](const scale::Plan& plan) { return plan.sequence; }));
  EXPECT_FALSE(any(megatron, [](const scale::Plan& plan) { return plan.shard > 0; }));
  for (const scale::Step& step : megatron.steps) {
    EXPECT_TRUE(step.unvalidated.size() > 0 || !(step.plan.sequence || step.plan.context > 1)) << describe(step.plan);
  }
  question.settings.back().second = "1024";
  question.megatron = false;
  const ScaleAnswer pytorch = answer_to(question);
  EXPECT_TRUE(any(pytorch, [](const scale::Plan& plan) { return plan.shard == 8; }));
  EXPECT_FALSE(any(pytorch, [](const scale::Plan& plan) { return plan.context > 1 || plan.sequence; }));
}

// The amount of micro-batches, told as `predict` takes it or as a global batch.
TEST(Scale, AccumulationIsThatOfPredict) {
  ModelRequest request{.model = "gpt2_small", .batch = 4};
  request.setup.accumulate = 4;
  const Device gpu = *scale_cost_models().devices.find("a100");
  const Prediction prediction = predict(*build_run(request, gpu), gpu, scale_cost_models());
  ScaleQuestion question{.model = "gpt2_small", .gpu = "a100", .gpus = {1}, .micro_batch = 4};
  question.setup = request.setup;
  const scale::Step told = answer_to(question).steps.front();
  EXPECT_NEAR(milliseconds(told.time) / milliseconds(prediction.times.iteration), 1, 0.01);
  EXPECT_EQ(told.samples, 16);
  question.setup.accumulate = 1;
  question.global_batch = 16;
  EXPECT_EQ(answer_to(question).steps.front().time, told.time);
  question.setup.accumulate = 4;
  EXPECT_FALSE(scale_out(question, scale_cost_models()));
}

// Plans of several stages derive equal layers once; nothing else comes of it than of all.
TEST(Scale, LayersThatRepeatAreCostedOnce) {
  const Device gpu = *scale_cost_models().devices.find("a100");
  for (const char* model : {"gpt2_medium", "bert_large", "llama2_7b"}) {
    ScaleQuestion question{.model = model, .gpu = "a100", .gpus = {8}, .default_precision = false};
    question.setup.precision = Precision::bf16;
    const auto scaled = scaled_model(question, gpu);
    ASSERT_TRUE(scaled) << scaled.error().message();
    scale::StepSetup setup{.cluster = {gpu, 8, 8, link_within(gpu, 8), link_within(gpu, 8)}, .efficiency = {}};
    setup.bytes = state_bytes(*scaled);
    for (const bool checkpoint : {false, true}) {
      const scale::Cut cut{4, 2, checkpoint};
      const auto whole = cost_source(question, *scaled, setup, scale_cost_models(), true)(cut);
      const auto brief = cost_source(question, *scaled, setup, scale_cost_models(), false)(cut);
      ASSERT_TRUE(whole && brief) << model;
      ASSERT_EQ(whole->blocks.size(), brief->blocks.size()) << model;
      const auto near = [&](auto of) { EXPECT_NEAR(of(*brief) / of(*whole), 1, 0.02) << model << checkpoint; };
      const auto sum = [](auto field) {
        return [field](const scale::ModelCosts& costs) {
          double all = 0;
          for (const scale::Block& block : costs.blocks) all += static_cast<double>((block.*field).value);
          return all;
        };
      };
      near(sum(&scale::Block::forward));
      near(sum(&scale::Block::backward));
      near(sum(&scale::Block::forward_exchange));
      near(sum(&scale::Block::backward_exchange));
      near(sum(&scale::Block::saved));
      near([](const scale::ModelCosts& costs) { return costs.peak_seconds; });
      near([](const scale::ModelCosts& costs) { return costs.update_ns; });
      for (size_t i = 0; i < whole->blocks.size(); ++i) {
        EXPECT_EQ(whole->blocks[i].parameters, brief->blocks[i].parameters) << model;
        EXPECT_EQ(whole->blocks[i].layer, brief->blocks[i].layer) << model;
      }
    }
  }
}

// Llama 3 405B as its authors trained it: 126 layers over 16 stages.
TEST(Scale, TakesThePlanOfLlama405B) {
  ScaleQuestion question{.model = "llama",
                         .settings = {{"hidden", "16384"},
                                      {"intermediate", "53248"},
                                      {"layers", "126"},
                                      {"heads", "128"},
                                      {"kv_heads", "8"},
                                      {"vocab", "128256"},
                                      {"length", "8192"}},
                         .gpu = "h100",
                         .gpus = {16384},
                         .network = "8xndr",
                         .strategy = "tp=8,pp=16,zero=1,checkpoint",
                         .global_batch = 2048,
                         .default_precision = false};
  question.setup.precision = Precision::bf16;
  const ScaleAnswer answer = answer_to(question);
  ASSERT_EQ(answer.steps.size(), 1U);
  EXPECT_EQ(answer.parameters, 405'853'388'800);
  EXPECT_GT(answer.steps[0].model_flops_share, 0.1);
  EXPECT_LT(answer.steps[0].model_flops_share, 0.6);
  EXPECT_GT(answer.steps[0].tensor_exchange, Nanoseconds());
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
                            "gpt2_small", "bert_large", "Qwen/Qwen3-0.6B"}) {
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

TEST(Scale, SharedLayersMeanMegatronUnlessToldOtherwise) {
  const auto stack = [](const ScaleQuestion& question) { return answer_to(question).stack; };
  EXPECT_EQ(stack({.model = "gpt2_small", .gpus = {1}, .strategy = "tp"}), "pytorch");
  EXPECT_EQ(stack({.model = "gpt2_small", .strategy = "dp"}), "pytorch");
  EXPECT_EQ(stack({.model = "gpt2_small", .strategy = "zero3"}), "pytorch");
  EXPECT_EQ(stack({.model = "gpt2_small", .strategy = "tp=4"}), "megatron");
  EXPECT_EQ(stack({.model = "gpt2_small", .strategy = "zero=3,tp=1,pp=1"}), "megatron");
  EXPECT_EQ(stack({.model = "gpt2_small", .strategy = "pp=2"}), "megatron");
  EXPECT_EQ(stack({.model = "gpt2_small", .strategy = "tp=4", .megatron = false}), "pytorch");
  EXPECT_EQ(stack({.model = "resnet18", .strategy = "pp=2"}), "pytorch");  // Megatron has none
  ScaleQuestion question{.model = "gpt2_small", .strategy = "tp=4", .default_precision = false};
  EXPECT_EQ(stack(question), "pytorch");  // nor float32
  question.setup.precision = Precision::amp_bf16;
  EXPECT_EQ(stack(question), "megatron");
  const std::string text = to_text(answer_to(question));
  EXPECT_NE(text.find("--stack pytorch is eager PyTorch"), std::string::npos) << text;
}

TEST(Scale, SaysWhichPrecision) {
  EXPECT_EQ(answer_to({.model = "gpt2_small"}).precision, "fp32");
  EXPECT_EQ(answer_to({.model = "resnet18"}).precision, "fp32");
  EXPECT_EQ(answer_to({.model = "gpt2_small", .gpu = "a100", .megatron = true}).precision, "bf16_main");
  const std::string text = to_text(answer_to({.model = "gpt2_small", .gpu = "v100", .megatron = true}));
  EXPECT_NE(text.find("float16 weights"), std::string::npos) << text;
  ScaleQuestion half{.model = "gpt2_small", .gpu = "a100", .megatron = true, .default_precision = false};
  half.setup.precision = Precision::fp16;
  const ScaleAnswer float16 = answer_to(half);
  half.setup.precision = Precision::bf16;
  const ScaleAnswer bfloat16 = answer_to(half);
  EXPECT_EQ(float16.precision, "fp16_main");
  EXPECT_EQ(bfloat16.precision, "bf16_main");
  // Of bfloat16, gradients are added up and sent in float32.
  EXPECT_EQ(bfloat16.steps[0].memory.gradients.value, 2 * float16.steps[0].memory.gradients.value);
  EXPECT_GT(bfloat16.steps[0].exchange, float16.steps[0].exchange);
  ScaleQuestion question{.model = "gpt2_small", .gpu = "v100", .default_precision = false};
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
  EXPECT_NE(problem({.model = "resnet50", .strategy = "tp=2"}).find("leave out tp"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2_small", .strategy = "tp=8"}).find("tp=4"), std::string::npos);  // of 12 heads
  EXPECT_NE(problem({.model = "resnet50", .megatron = true}).find("gpt2, llama and bert"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2", .gpus = {12}}).find("--node"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2_small", .gpus = {32}, .strategy = "pp=32"}).find("choose pp=8"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2_small", .gpus = {4}, .strategy = "pp=4,chunks=4"}).find("chunks=3"),
            std::string::npos);
  EXPECT_NE(problem({.model = "gpt2_small", .gpus = {24}, .strategy = "tp=6"}).find("tp=4 or tp=8"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2_small", .gpus = {24}, .strategy = "tp=8", .megatron = false}).find("choose tp=4"),
            std::string::npos);
  EXPECT_NE(problem({.model = "gpt2_small", .gpus = {8, 8}}).find("twice"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2", .network = "carrier pigeon"}).find("--network"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2", .strategy = "wfbp", .megatron = true}).find("WFBP"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2", .strategy = "bsp", .megatron = true}).find("--stack pytorch"), std::string::npos);
  EXPECT_NE(problem({.model = "gpt2_xl", .strategy = "dp,mb=1", .global_batch = int64_t{1} << 40}).find("days"),
            std::string::npos);
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

// Tables on GPUs of their own: sums travel, and gradients of the tables do not.
TEST(Scale, DealsOutTablesOfRecommendationModels) {
  ScaleQuestion question{.model = "dlrm_kaggle", .gpu = "a100", .gpus = {8}, .strategy = "dp", .micro_batch = 2048};
  const scale::Step whole = answer_to(question).steps.front();
  question.strategy = "ep=8";
  const ScaleAnswer answer = answer_to(question);
  const scale::Step& dealt = answer.steps.front();
  EXPECT_EQ(answer.parameters, 33'762'577 * 16 + 476'242);  // of all GPUs: rows of 16, and the MLPs
  EXPECT_EQ(whole.tensor_exchange, Nanoseconds());
  EXPECT_GT(dealt.tensor_exchange, Nanoseconds());
  EXPECT_LT(dealt.exchange.value, whole.exchange.value / 50);
  EXPECT_LT(dealt.memory.parameters.value, whole.memory.parameters.value / 2);
  EXPECT_LT(dealt.time, whole.time);
  EXPECT_FALSE(dealt.unvalidated.empty());
}

TEST(Scale, ProductsInFp8AreFasterAndMarked) {
  for (const bool megatron : {false, true}) {
    ScaleQuestion question{.model = "meta-llama/Llama-3.1-8B",
                           .gpu = "h100",
                           .gpus = {8},
                           .strategy = megatron ? "tp=2,zero=1" : "fsdp,checkpoint",
                           .micro_batch = 1,
                           .default_precision = false};
    question.settings = {{"length", "8192"}};
    question.megatron = megatron;
    question.setup.precision = Precision::amp_bf16;
    const scale::Step half = answer_to(question).steps.front();
    question.setup.precision = Precision::amp_fp8;
    const ScaleAnswer answer = answer_to(question);
    const scale::Step& narrow = answer.steps.front();
    EXPECT_EQ(answer.precision, megatron ? "fp8_main" : "amp_fp8");
    EXPECT_LT(narrow.compute.value, 0.9 * static_cast<double>(half.compute.value));
    EXPECT_GT(narrow.compute.value, 0.5 * static_cast<double>(half.compute.value));
    EXPECT_LT(narrow.model_flops_share, half.model_flops_share) << "of a peak that is twice as high";
    EXPECT_NE(std::find(narrow.unvalidated.begin(), narrow.unvalidated.end(), "products in fp8"),
              narrow.unvalidated.end());
    EXPECT_GT(narrow.high.value, 1.4 * static_cast<double>(narrow.time.value));
  }
}

// The optimizer on the host, by the allocator's replay: as much less memory as its states took.
TEST(Scale, OptimizersOnTheHostTakeNoMemoryOfTheGpu) {
  ScaleQuestion question{.model = "gpt2_medium",
                         .gpu = "a100",
                         .gpus = {8},
                         .strategy = "zero1",
                         .micro_batch = 2,
                         .default_precision = false};
  question.setup.precision = Precision::amp_bf16;
  const scale::Step kept = answer_to(question).steps.front();
  question.strategy = "zero1,offload";
  const scale::Step moved = answer_to(question).steps.front();
  EXPECT_GT(kept.memory.states, Bytes());
  EXPECT_EQ(moved.memory.states, Bytes());
  EXPECT_LE(moved.memory.total() + kept.memory.states, kept.memory.total() + Bytes(int64_t{64} << 20));
  EXPECT_GT(moved.update, kept.update * 2);
  EXPECT_EQ(moved.compute, kept.compute);
}

// Stages through the allocator: near the rules, more where more micro-batches are in flight, and all of the model's weights.
TEST(Scale, ReplaysTheMemoryOfStages) {
  ScaleQuestion question{
      .model = "gpt2_medium", .gpu = "a100", .gpus = {4}, .strategy = "pp=4", .default_precision = false};
  question.setup.precision = Precision::amp_bf16;
  question.megatron = false;
  question.micro_batch = 2;
  Bytes before;
  for (const int64_t batches : {1, 2, 4, 16}) {
    question.global_batch = 2 * batches;
    const scale::Step step = answer_to(question).steps.front();
    EXPECT_EQ(step.plan.micro_batches, batches);
    EXPECT_GT(step.memory.total(), before) << batches;
    if (batches == 16) {  // no more are in flight than of four
      EXPECT_LT(gibibytes(step.memory.total()), 1.1 * gibibytes(before));
    }
    before = step.memory.total();
    question.strategy = "pp=4";
  }
  question.global_batch = 8;
  const scale::Step whole = answer_to(question).steps.front();
  question.strategy = "pp=2,chunks=2,mb=2";  // by the rules
  question.gpus = {2};
  const scale::Step rules = answer_to(question).steps.front();
  EXPECT_LT(whole.memory.parameters, rules.memory.parameters);
}

}  // namespace
}  // namespace forerun
