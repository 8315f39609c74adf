#include "api/scaled_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "compile/compiled_iteration.h"
#include "derive/expert_parallel.h"
#include "derive/precision_support.h"
#include "derive/tensor_splits.h"
#include "graph/op_modules.h"
#include "predict/predict.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

// Whether all weights are trained, and nothing is done but the update. Micro-batches and checkpointing are the plan's.
bool is_plain(const TrainingSetup& setup) {
  const TrainingSetup plain = {.precision = setup.precision,
                               .optimizer = setup.optimizer,
                               .channels_last = setup.channels_last,
                               .accumulate = setup.accumulate,
                               .checkpointing = setup.checkpointing,
                               .attention = setup.attention,
                               .compile = setup.compile};
  return setup == plain;
}

Error not_plain() {
  return {
      "adapters, frozen and quantized weights, clipping, averages and libraries' loops are not modelled on several "
      "GPUs",
      "--lora, --freeze, --quantize, --clip-grad, --ema, --loop",
      "leave them out, or ask `forerun predict` for one GPU"};
}

// The longest list of blocks of a model.
int64_t layers_of(const Graph& forward) {
  std::map<std::string, std::set<std::string, std::less<>>> lists;
  for (const Op& op : forward.ops()) {
    const std::string_view block = block_of(forward.module(op));
    if (!block.empty()) lists[folded_module(block)].emplace(block);
  }
  size_t most = 0;
  for (const auto& [list, blocks] : lists) most = std::max(most, blocks.size());
  return static_cast<int64_t>(most);
}

// A capture is trained as it was recorded.
Result<ScaledModel> captured_model(const ScaleQuestion& question, const Device& gpu) {
  ModelRequest request{.model = question.model, .file = FileKind::records, .settings = question.settings};
  request.setup = question.setup;
  request.default_optimizer = question.default_optimizer;
  const auto run = build_run(request, gpu);
  if (!run) return run.error();
  if (!is_plain(run->setup) || run->setup.accumulate > 1 || run->setup.checkpointing != Checkpointing::none) {
    return not_plain().within(question.model);
  }
  ScaledModel model;
  model.name = run->id;
  model.file = FileKind::records;
  model.parameters = run->graph.parameter_count();
  model.setup = run->setup;
  model.own_batch = run->input.batch;
  return model;
}

// As Megatron-LM trains it.
Result<ScaledModel> megatron_model(const ScaleQuestion& question, const Device& gpu, ScaledModel model) {
  const Precision asked = question.default_precision ? Precision::bf16 : question.setup.precision;
  const bool float16 = asked == Precision::amp_fp16 || asked == Precision::fp16;
  const bool fp8 = asked == Precision::amp_fp8;
  if (!float16 && !fp8 && asked != Precision::amp_bf16 && asked != Precision::bf16) {
    return Error{"Megatron's precision is its own: half-precision weights with float32 copies", "--precision",
                 "take bf16, fp16, or amp_fp8 for its products in fp8, or leave out --stack megatron"};
  }
  if (fp8) {
    if (const Status status = derive::check_precision(asked, gpu); !status) return status.error();
  }
  auto settings = question.settings;
  settings.emplace_back("batch", "1");
  const auto built = model.file ? zoo::build_config(question.model, settings) : zoo::build(question.model, settings);
  if (!built) return built.error();
  model.transformer = scale::transformer_of(*built);
  if (!model.transformer) {
    return Error{fmt::format("{} is no transformer that is trained so here", question.model), "--stack megatron",
                 "gpt2, llama and bert (head=mlm) are; leave it out for other models"};
  }
  model.layers = model.transformer->layers;
  model.shares_layers = true;
  model.own_batch = 1;
  model.setup.precision = float16 || gpu.peak.bf16_tensor <= 0 ? Precision::fp16 : Precision::bf16;
  if (fp8) model.setup.precision = Precision::amp_fp8;
  return model;
}

// Whether it is asked how layers are shared by a tensor group or dealt out to stages: plans that name either, as every plan
// of a search does when it is written out.
bool shares_work_in_layers(const ScaleQuestion& question) {
  if (std::all_of(question.gpus.begin(), question.gpus.end(), [](int64_t gpus) { return gpus == 1; })) return false;
  if (question.search) return true;
  const auto request = scale::parse_plan(plan_text(question));
  return request && request->names_layers;
}

Status check_compiled_question(const ScaleQuestion& question) {
  const CompileMode mode = question.setup.compile;
  if (mode == CompileMode::none) return {};
  if (question.megatron.value_or(false)) {
    return Error{"Megatron-LM has fused kernels of its own, and is not predicted compiled", "--compile",
                 "leave it out, or take --stack pytorch"};
  }
  const bool many = std::any_of(question.gpus.begin(), question.gpus.end(), [](int64_t gpus) { return gpus > 1; });
  if (many && launches_graphs(mode)) {
    return Error{"what leaves CUDA graphs for other GPUs while they run is not predicted",
                 "--compile=" + std::string(name_of(mode)),
                 "take --compile=default or --compile=max-autotune-no-cudagraphs, or one GPU"};
  }
  return {};
}

}  // namespace

Status check_compiled_plan(const ScaledModel& model, const scale::Plan& plan) {
  if (model.setup.compile == CompileMode::none) return {};
  if (plan.tensor * plan.context * plan.experts * plan.pipeline > 1) {
    return Error{"compiled models are predicted as replicas: how their parts compile is not known",
                 "--compile with tp, cp, ep and pp", "take dp, ZeRO or FSDP, or leave out --compile"};
  }
  TrainingSetup setup = model.setup;
  setup.accumulate = plan.micro_batches;
  if (plan.checkpoint) setup.checkpointing = Checkpointing::block;
  if (plan.selective) setup.checkpointing = Checkpointing::selective;
  return compile::check_setup(setup);
}

Status check_offload(const ScaledModel& model, const scale::Plan& plan) {
  if (!plan.offload) return {};
  if (model.file == FileKind::records) {
    return Error{"a captured iteration has its update on the GPU", "--strategy offload",
                 "take the model's name, config.json or ONNX file, or leave out offload"};
  }
  switch (model.setup.optimizer.kind) {
    case OptimizerKind::sgd:
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::adagrad:
    case OptimizerKind::lion: return {};
    default: break;
  }
  return Error{fmt::format("{} has no step on the CPU that is known here", name_of(model.setup.optimizer.kind)),
               "--strategy offload", "take adam, adamw, adagrad, lion or sgd, or leave out offload"};
}

Result<ScaledModel> scaled_model(const ScaleQuestion& question, const Device& gpu) {
  for (const auto& [key, value] : question.settings) {
    if (key == "batch") return Error{"--set batch is not read here", "--set", "give --micro-batch or --global-batch"};
  }
  const auto file = model_file(question.model, "scale");
  if (!file) return file.error();
  if (!is_plain(question.setup)) return not_plain();
  if (const Status status = check_compiled_question(question); !status) return status.error();
  if (*file == FileKind::records) {
    if (!question.megatron.value_or(false)) return captured_model(question, gpu);
    return Error{"a captured iteration is what PyTorch ran", "--stack megatron", "leave it out"};
  }
  const ModelRequest request{.model = question.model,
                             .file = *file,
                             .settings = question.settings,
                             .setup = question.setup,
                             .default_optimizer = question.default_optimizer};
  const auto read = forward_model(request);
  if (!read) return read.error();
  ScaledModel model;
  model.name = question.model;
  model.file = *file;
  model.setup = chosen_setup(request, read->input.kind);
  model.setup.accumulate = 1;
  model.setup.checkpointing = Checkpointing::none;
  model.parameters = read->forward.parameter_count();
  model.own_batch = read->input.batch;
  model.sequence = read->input.kind == InputKind::tokens ? read->input.size : 0;
  if (question.megatron.value_or(false)) {
    if (*file != FileKind::onnx_model) return megatron_model(question, gpu, std::move(model));
    return Error{"an ONNX file does not say which transformer it is", "--stack megatron", "leave it out"};
  }
  const bool compiled = question.setup.compile != CompileMode::none;
  if (!question.megatron && *file != FileKind::onnx_model && !compiled && shares_work_in_layers(question)) {
    if (auto trained = megatron_model(question, gpu, model))
      return trained;  // else a model that Megatron does not have
  }
  if (compiled) return model;  // neither its layers nor its experts are shared
  model.layers = layers_of(read->forward);
  model.experts = derive::experts_of(read->forward);
  if (!*file) model.tables = derive::summed_tables(read->forward);
  model.shares_layers = derive::tensor_splits(read->forward, 2).ok();
  return model;
}

}  // namespace forerun
