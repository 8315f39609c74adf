#include "api/scaled_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cost/analytic/analytic.h"
#include "derive/precision_support.h"
#include "derive/work.h"
#include "predict/model_file.h"
#include "predict/predict.h"
#include "predict/predicted_memory.h"
#include "scale/graph_cost.h"
#include "scale/replica_schedule.h"
#include "scale/transformer_cost.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

// Whether all weights are trained, in one pass an iteration, and nothing is done but the update.
bool is_plain(const TrainingSetup& setup) {
  const TrainingSetup plain = {.precision = setup.precision,
                               .optimizer = setup.optimizer,
                               .channels_last = setup.channels_last,
                               .attention = setup.attention};
  return setup == plain;
}

int64_t optimizer_bytes(const OptimizerSpec& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::sgd: return optimizer.momentum != 0 ? 4 : 0;
    case OptimizerKind::adafactor: return 0;
    case OptimizerKind::adamw_8bit: return 2;
    case OptimizerKind::rmsprop:
    case OptimizerKind::lion:
    case OptimizerKind::muon:
    case OptimizerKind::adagrad: return 4;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::other: return 8;
  }
  return 8;
}

scale::ProductWork product_work(const Graph& graph, const Device& gpu, Precision precision) {
  scale::ProductWork sum;
  for (const Op& op : graph.ops()) {
    if (op.phase == Phase::update) continue;
    const OpWork work = work_of(graph, op);
    if (work.gemm_count == 0 || !work.on_gpu) continue;
    sum.flops += work.flops.value;
    sum.peak_seconds += work.flops.value / gpu.rate(arithmetic_unit(work, precision));
  }
  return sum;
}

Result<TrainingRun> run_of(const ScaleQuestion& question, const ScaledModel& model, const Device& gpu,
                           int64_t micro_batch) {
  ModelRequest request{.model = question.model,
                       .file = model.file,
                       .settings = question.settings,
                       .setup = model.setup,
                       .default_optimizer = false};
  if (micro_batch != model.own_batch) request.batch = micro_batch;
  return build_run(request, gpu);
}

struct GraphTimes {
  std::vector<OpCost> costs;
  HostCosts host;
  IterationTiming lanes;
};

GraphTimes graph_times(const TrainingRun& run, const Device& gpu, const CostModels& cost_models) {
  GraphTimes times;
  times.costs = gpu_costs(run, gpu, cost_models);
  const double speed = host_speed(cost_models, run);
  times.host = host_costs(run.graph, times.costs, cost_models.host, speed);
  times.lanes = host_gpu_timeline(lane_ops(run.graph, times.costs, times.host),
                                  {.gap = gpu.launch_gap, .per_iteration = times.host.per_iteration});
  return times;
}

// The iteration of one GPU at that micro-batch, block by block.
Result<scale::ModelCosts> costs_of_graph(const ScaleQuestion& question, const ScaledModel& model, const Device& gpu,
                                         const CostModels& cost_models, int64_t micro_batch) {
  const auto run = run_of(question, model, gpu, micro_batch);
  if (!run) return run.error();
  const GraphTimes times = graph_times(*run, gpu, cost_models);
  return scale::graph_costs(*run, times.costs, times.host, times.lanes,
                            product_work(run->graph, gpu, run->setup.precision));
}

Error not_plain() {
  return {
      "checkpointing, accumulation, adapters, frozen and quantized weights, clipping and averages are not modelled on "
      "several GPUs",
      "--checkpoint, --accumulate, --lora, --freeze, --quantize, --clip-grad, --ema, --loop",
      "leave them out, or ask `forerun predict` for one GPU"};
}

// A capture is trained as it was recorded.
Result<ScaledModel> captured_model(const ScaleQuestion& question, const Device& gpu) {
  ModelRequest request{.model = question.model, .file = FileKind::records, .settings = question.settings};
  request.setup = question.setup;
  request.default_optimizer = question.default_optimizer;
  const auto run = build_run(request, gpu);
  if (!run) return run.error();
  if (!is_plain(run->setup)) return not_plain().within(question.model);
  ScaledModel model;
  model.name = run->id;
  model.file = FileKind::records;
  model.parameters = run->graph.parameter_count();
  model.setup = run->setup;
  model.own_batch = run->input.batch;
  return model;
}

}  // namespace

Result<ScaledModel> scaled_model(const ScaleQuestion& question, const Device& gpu) {
  auto settings = question.settings;
  for (const auto& [key, value] : settings) {
    if (key == "batch") return Error{"--set batch is not read here", "--set", "give --micro-batch or --global-batch"};
  }
  settings.emplace_back("batch", "1");
  const auto file = model_file(question.model, "scale");
  if (!file) return file.error();
  if (!is_plain(question.setup)) return not_plain();
  if (*file == FileKind::records) return captured_model(question, gpu);
  ScaledModel model;
  model.name = question.model;
  model.file = *file;
  model.setup = question.setup;
  InputKind input = InputKind::image;
  if (*file == FileKind::onnx_model) {
    const auto read = forward_model({.model = question.model, .file = *file, .settings = question.settings});
    if (!read) return read.error();
    model.parameters = read->forward.parameter_count();
    input = read->input.kind;
  } else {
    const auto built = *file ? zoo::build_config(question.model, settings) : zoo::build(question.model, settings);
    if (!built) return built.error();
    model.transformer = scale::transformer_of(*built);
    model.parameters = model.transformer ? model.transformer->parameters() : built->forward.parameter_count();
    input = built->input.kind;
  }
  if (question.default_precision && model.transformer) model.setup.precision = Precision::amp_bf16;
  if (question.default_optimizer) {
    const bool tokens = input == InputKind::tokens;
    model.setup.optimizer.kind = tokens ? OptimizerKind::adamw : OptimizerKind::sgd;
    model.setup.optimizer.momentum = tokens ? 0 : 0.9;
  }
  return model;
}

Unit scale_unit(Precision precision, const Device& gpu) {
  switch (precision) {
    case Precision::fp32: return Unit::fp32_matrix;
    case Precision::tf32: return Unit::tf32_tensor;
    case Precision::amp_bf16:
    case Precision::amp_fp16:
    case Precision::bf16:
    case Precision::fp16: break;
  }
  return gpu.peak.bf16_tensor > 0 ? Unit::bf16_tensor : Unit::fp16_tensor;
}

std::string precision_text(const ScaledModel& model, const Device& gpu) {
  if (std::string caveat = derive::precision_caveat(model.setup.precision, gpu); !caveat.empty()) return caveat;
  if (!model.transformer || !is_half(model.setup.precision)) {
    return fmt::format("precision {}", name_of(model.setup.precision));
  }
  const bool bfloat16 = gpu.peak.bf16_tensor > 0;
  return fmt::format(
      "precision amp_bf16: {} weights and products with a float32 copy for the optimizer, as Megatron has it{}",
      bfloat16 ? "bfloat16" : "float16", bfloat16 ? "" : "; the GPU has no bfloat16 units");
}

scale::StateBytes state_bytes(const ScaledModel& model) {
  // Transformers keep half-precision weights and float32 copies for the optimizer, as Megatron does; other models are
  // trained under autocast, which keeps float32 weights.
  const int64_t state = optimizer_bytes(model.setup.optimizer);
  if (model.transformer && is_half(model.setup.precision)) return {2, 2, 4 + state};
  return {4, 4, state};
}

scale::CostSource cost_source(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                              const CostModels& cost_models) {
  if (model.transformer) {
    const bool half = is_half(model.setup.precision);
    const scale::Arithmetic arithmetic{.unit = setup.unit, .element = half ? 2 : 4, .update_bytes = half ? 30 : 28};
    return [&model, &setup, arithmetic](int64_t micro_batch, int64_t tensor) {
      return scale::transformer_costs(*model.transformer, setup.cluster, setup.efficiency, arithmetic, micro_batch,
                                      tensor);
    };
  }
  auto known = std::make_shared<std::map<int64_t, Result<scale::ModelCosts>>>();
  return [&, known](int64_t micro_batch, int64_t tensor) -> Result<scale::ModelCosts> {
    if (tensor > 1) {
      return Error{fmt::format("layers of {} are not shared among GPUs", question.model), "tensor parallelism",
                   "tp goes with gpt2, llama and bert (head=mlm); leave it out"};
    }
    const auto found = known->find(micro_batch);
    if (found != known->end()) return found->second;
    return known->emplace(micro_batch, costs_of_graph(question, model, setup.cluster.gpu, cost_models, micro_batch))
        .first->second;
  };
}

Status refine_exchange(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                       const CostModels& cost_models, scale::Step& step) {
  const scale::Plan& plan = step.plan;
  if (model.transformer) {
    if (plan.schedule == scale::Schedule::buckets) return {};
    return Error{fmt::format("{} is not a schedule of transformers", name_of(plan.schedule)), "--strategy",
                 "their gradients travel layer by layer: leave it out, or take another model"};
  }
  if (plan.pipeline > 1 || plan.data < 2 || plan.exchange == scale::Exchange::servers_async) return {};
  if (plan.zero > 1 && plan.micro_batches > 1) return {};  // each micro-batch exchanges: block by block
  const auto run = run_of(question, model, setup.cluster.gpu, plan.micro_batch);
  if (!run) return run.error();
  const GraphTimes times = graph_times(*run, setup.cluster.gpu, cost_models);
  const auto tasks = model_tasks(run->graph, times.costs, {.gap = setup.cluster.gpu.launch_gap, .host = &times.host});
  if (!tasks) return tasks.error();
  const auto replicas = scale::replica_times(*tasks, plan, setup.cluster, setup.efficiency);
  if (!replicas) return replicas.error();
  const Nanoseconds computed = times.lanes.phases[0] + times.lanes.phases[1] + step.update;
  scale::set_exchange(step, replicas->exchange, std::max(replicas->iteration - computed, Nanoseconds()));
  return {};
}

Status replay_memory(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                     const CostModels& cost_models, scale::Step& step) {
  const scale::Plan& plan = step.plan;
  if (model.transformer || plan.pipeline > 1) return {};
  const auto run = run_of(question, model, setup.cluster.gpu, plan.micro_batch);
  if (!run) return run.error();
  MemoryQuestion asked;
  asked.parallel = {.gpus = plan.data, .replicas = true, .zero = plan.zero};
  asked.accumulating = plan.micro_batches > 1;
  const PredictedMemory memory = predicted_memory(*run, setup.cluster.gpu, cost_models.workspaces, asked);
  const MemoryEstimate& estimate = memory.estimate;
  step.memory.parameters = estimate.parameters + estimate.buffers;
  step.memory.gradients = estimate.gradients;
  step.memory.states = estimate.optimizer_state;
  step.memory.activations = estimate.activations + estimate.inputs;
  step.memory.transient = estimate.peak_reserved - step.memory.parameters - step.memory.gradients - step.memory.states -
                          step.memory.activations;
  step.memory.context = memory.context;
  step.fits = memory.fits;
  return {};
}

}  // namespace forerun
