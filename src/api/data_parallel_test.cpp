// The same question to `forerun whatif --apply ddp` and to `forerun scale`: one answer, as both take the iteration of `forerun
// predict` and ask timeline/gradient_exchange.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/scale.h"
#include "api/whatif.h"

namespace forerun {
namespace {

const CostModels& loaded_models() {
  static const CostModels loaded = [] {
    auto result = load_cost_models();
    CHECK(result.ok(), result.error().message());
    return std::move(*result);
  }();
  return loaded;
}

struct DataParallelCase {
  std::string model, gpu;
  int64_t batch = 32, gpus = 8, node = 8;
  std::string network;
  std::string extra = {};  // further parameters of the what-if
  Precision precision = Precision::fp32;
  bool compiled = false;
};

TrainingSetup plain_sgd(Precision precision) {
  TrainingSetup setup;
  setup.precision = precision;
  setup.optimizer.kind = OptimizerKind::sgd;
  setup.optimizer.momentum = 0.9;
  return setup;
}

double by_whatif(const DataParallelCase& asked, const std::string& optimization) {
  ModelRequest request{
      .model = asked.model, .batch = asked.batch, .setup = plain_sgd(asked.precision), .default_optimizer = false};
  WhatIfQuestion question;
  question.gpu = asked.gpu;
  if (!optimization.empty()) {
    std::vector<std::string> applied;
    if (asked.compiled) applied.emplace_back("compile");
    applied.push_back(fmt::format("{}:workers={},per_node={},network={}{}", optimization, asked.gpus, asked.node,
                                  asked.network, asked.extra));
    question.applications = *whatif::parse_applications(applied);
  }
  const auto answer = what_if(request, question, loaded_models());
  EXPECT_TRUE(answer.ok()) << answer.error().message();
  return answer.ok() ? answer->predicted_ms : 0;
}

double by_scale(const DataParallelCase& asked, const std::string& strategy) {
  ScaleQuestion question{.model = asked.model,
                         .gpu = asked.gpu,
                         .gpus = {asked.gpus},
                         .node = asked.node,
                         .network = asked.network,
                         .strategy = strategy,
                         .micro_batch = asked.batch,
                         .setup = plain_sgd(asked.precision),
                         .default_precision = false,
                         .default_optimizer = false};
  if (asked.compiled) question.setup.compile = CompileMode::standard;
  const auto answer = scale_out(question, loaded_models());
  EXPECT_TRUE(answer.ok()) << answer.error().message();
  return answer.ok() ? milliseconds(answer->steps.front().time) : 0;
}

void expect_one_answer(const DataParallelCase& asked, const std::string& optimization, const std::string& strategy) {
  const double edited = by_whatif(asked, optimization), planned = by_scale(asked, strategy);
  EXPECT_NEAR(edited / planned, 1, 0.01) << fmt::format("{} on {} {} over {}, {}: whatif {:.3f} ms, scale {:.3f} ms",
                                                        asked.model, asked.gpus, asked.gpu, asked.network, optimization,
                                                        edited, planned);
}

TEST(DataParallel, WhatIfAndScaleGiveOneAnswerForDdp) {
  for (const char* model : {"resnet50", "vgg16", "mobilenet_v2", "densenet121"}) {
    for (const int64_t gpus : {2, 8, 16}) {
      for (const char* network : {"10gbe", "4xhdr"}) {
        expect_one_answer({.model = model, .gpu = "v100", .gpus = gpus, .network = network}, "ddp", "dp");
      }
    }
  }
}

TEST(DataParallel, WhatIfAndScaleGiveOneAnswerWithOneGpuANode) {
  for (const char* gpu : {"a100", "h200", "rtx 2080 ti"}) {
    for (const char* network : {"25gbe", "hdr"}) {
      expect_one_answer({.model = "resnet50", .gpu = gpu, .gpus = 8, .node = 1, .network = network}, "ddp", "dp");
      expect_one_answer({.model = "resnet50", .gpu = gpu, .gpus = 8, .node = 4, .network = network}, "ddp", "dp");
    }
  }
}

TEST(DataParallel, WhatIfAndScaleGiveOneAnswerForOtherSchedules) {
  const DataParallelCase asked{.model = "resnet50", .gpu = "v100", .gpus = 16, .node = 4, .network = "25gbe"};
  expect_one_answer(asked, "bsp", "bsp");
  expect_one_answer(asked, "wfbp", "wfbp");
  expect_one_answer(asked, "mg_wfbp", "mg-wfbp");
  DataParallelCase servers = asked;
  servers.extra = ",colocated=yes";
  expect_one_answer(servers, "parameter_server", "ps");
}

TEST(DataParallel, WhatIfAndScaleGiveOneAnswerForTransformers) {
  for (const char* model : {"gpt2_small", "bert_base", "Qwen/Qwen3-0.6B"}) {
    for (const int64_t gpus : {8, 16}) {
      DataParallelCase asked{.model = model, .gpu = "a100", .batch = 4, .gpus = gpus, .network = "4xhdr"};
      expect_one_answer(asked, "ddp", "dp");
      expect_one_answer(asked, "wfbp", "wfbp");
      for (const char* stage : {"1", "2", "3"}) {
        asked.extra = fmt::format(",stage={}", stage);
        expect_one_answer(asked, "zero", fmt::format("zero{}", stage));
      }
    }
  }
}

// Under autocast ZeRO gathers in half precision, and Hopper GPUs that products keep busy are slower beside others.
TEST(DataParallel, WhatIfAndScaleGiveOneAnswerInHalfPrecision) {
  for (const char* gpu : {"a100", "h100"}) {
    DataParallelCase asked{.model = "meta-llama/Llama-3.2-1B", .gpu = gpu, .batch = 4, .gpus = 16, .network = "4xhdr"};
    asked.precision = Precision::amp_bf16;
    expect_one_answer(asked, "ddp", "dp");
    for (const char* stage : {"2", "3"}) {
      asked.extra = fmt::format(",stage={}", stage);
      expect_one_answer(asked, "zero", fmt::format("zero{}", stage));
    }
  }
}

TEST(DataParallel, WhatIfAndScaleGiveOneAnswerForCompiledModels) {
  for (const char* model : {"resnet50", "gpt2_small", "Qwen/Qwen3-0.6B"}) {
    for (const int64_t gpus : {8, 16}) {
      DataParallelCase asked{.model = model, .gpu = "a100", .batch = 8, .gpus = gpus, .network = "hdr"};
      asked.compiled = true;
      expect_one_answer(asked, "ddp", "dp");
      for (const char* stage : {"1", "2"}) {
        asked.extra = fmt::format(",stage={}", stage);
        expect_one_answer(asked, "zero", fmt::format("zero{}", stage));
      }
    }
  }
}

TEST(DataParallel, WhatIfAndScaleGiveOneAnswerForZero) {
  for (const char* stage : {"1", "2", "3"}) {
    for (const char* network : {"25gbe", "hdr"}) {
      DataParallelCase asked{.model = "resnet50", .gpu = "a100", .batch = 64, .gpus = 16, .network = network};
      asked.extra = fmt::format(",stage={}", stage);
      expect_one_answer(asked, "zero", fmt::format("zero{}", stage));
    }
  }
}

}  // namespace
}  // namespace forerun
