#include "predict/predict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <unordered_map>

#include "base/parallel.h"
#include "cost/analytic/analytic.h"
#include "cost/host/parameters_in_place.h"
#include "derive/cuda_forms.h"
#include "derive/dispatch.h"
#include "derive/fp8_linear.h"
#include "derive/iteration.h"
#include "derive/precision_support.h"
#include "derive/quantized_linear.h"
#include "graph/graph.h"
#include "graph/op_modules.h"
#include "predict/compiled.h"
#include "predict/host_remedies.h"
#include "predict/machine_calibration.h"
#include "predict/predicted_memory.h"
#include "zoo/zoo.h"

namespace forerun {
namespace {

constexpr size_t kCostliest = 10;

struct ShareBuilder {
  CostShare row;
  std::array<int64_t, 4> by_bound{};  // nanoseconds by Bound
  Nanoseconds costliest;
  const Op* largest = nullptr;  // the op that takes so long
  bool opaque = false;
  bool quantized = false;
  int64_t unseen = 0;  // ops without measured evidence

  void add(const OpCost& cost) {
    ++row.count;
    row.gpu += cost.gpu;
    by_bound[static_cast<size_t>(cost.bound)] += cost.gpu.value;
  }
  void merge(const ShareBuilder& other) {
    row.count += other.row.count;
    row.gpu += other.row.gpu;
    for (size_t i = 0; i < by_bound.size(); ++i) by_bound[i] += other.by_bound[i];
  }
};

std::vector<CostShare> costliest(std::map<std::string, ShareBuilder>& table, Nanoseconds total) {
  std::vector<ShareBuilder*> found;  // in the table's order, which decides between equals
  for (auto& [key, builder] : table) {
    if (builder.row.gpu.value != 0) found.push_back(&builder);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const ShareBuilder* a, const ShareBuilder* b) { return a->row.gpu > b->row.gpu; });
  std::vector<CostShare> rows;
  for (ShareBuilder* builder : std::span(found).first(std::min(found.size(), kCostliest))) {
    const auto* most = std::max_element(builder->by_bound.begin(), builder->by_bound.end());
    builder->row.bound = name_of(static_cast<Bound>(most - builder->by_bound.begin()));
    builder->row.share =
        static_cast<double>(builder->row.gpu.value) / static_cast<double>(std::max<int64_t>(total.value, 1));
    rows.push_back(std::move(builder->row));
  }
  return rows;
}

std::string operands(const Graph& graph, const Op& op) {
  std::string text;
  for (const TensorId id : graph.inputs(op).first(std::min<size_t>(op.input_count, 3))) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}[{}]", name_of(graph.tensor(id).dtype), fmt::join(graph.shape(id), ", "));
  }
  return text;
}

void add_costs(const Graph& graph, const std::vector<OpCost>& costs, Prediction& prediction) {
  // A backward op belongs to the module of the forward op with its sequence number.
  SequenceModules module_of(graph);
  for (const Op& op : graph.ops()) {
    if (op.phase == Phase::forward && op.sequence != 0) module_of.add(op.sequence, op.module);
  }
  std::unordered_map<uint64_t, ShareBuilder> kinds;  // by phase and name
  std::unordered_map<uint32_t, ShareBuilder> parts;  // by module
  Nanoseconds measured;
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    prediction.kernels += costs[i].kernels;
    const auto [found, fresh] =
        kinds.try_emplace(static_cast<uint64_t>(op.phase) << 32U | static_cast<uint64_t>(op.name.value));
    ShareBuilder& kind = found->second;
    if (fresh) {
      kind.row.name = graph.name(op);
      kind.row.phase = name_of(op.phase);
      kind.opaque = op_class(graph.name(op)) == OpClass::opaque;
      kind.quantized = derive::is_quantized_op(kind.row.name) || derive::is_fp8_op(kind.row.name);
    }
    const bool seen = costs[i].measured && !kind.quantized;
    if (seen) measured += costs[i].gpu;
    if (!seen && costs[i].gpu.value > 0) ++kind.unseen;
    kind.add(costs[i]);
    if (costs[i].gpu > kind.costliest) {
      kind.costliest = costs[i].gpu;
      kind.largest = &op;
    }
    if (op.phase == Phase::update) continue;
    const NameId known = op.phase == Phase::backward ? module_of.of(op.sequence) : NameId();
    parts[(known.valid() ? known : op.module).value].add(costs[i]);
  }
  // In an order that does not depend on hashes.
  std::map<std::string, ShareBuilder> ops;
  std::map<std::string, ShareBuilder> modules;
  for (auto& [key, kind] : kinds) {
    if (kind.unseen > 0) prediction.out_of_distribution[kind.row.name] += kind.unseen;
    if (kind.opaque) prediction.unknown_ops[kind.row.name] += kind.row.count;
    if (kind.largest != nullptr) kind.row.largest = operands(graph, *kind.largest);
    ops.emplace(kind.row.phase + kind.row.name, std::move(kind));
  }
  std::map<std::string, ShareBuilder> layers;
  for (auto& [module, part] : parts) {
    part.row.name = graph.names()[NameId(module)];
    const std::string folded = folded_module(part.row.name);
    ShareBuilder& layer = layers[folded];
    layer.merge(part);
    layer.row.name = folded;
    modules.emplace(part.row.name, std::move(part));
  }
  if (prediction.times.gpu_busy.value > 0) {
    prediction.measured_share =
        static_cast<double>(measured.value) / static_cast<double>(prediction.times.gpu_busy.value);
  }
  prediction.costliest_ops = costliest(ops, prediction.times.gpu_busy);
  prediction.costliest_modules = costliest(modules, prediction.times.gpu_busy);
  prediction.costliest_layers = costliest(layers, prediction.times.gpu_busy);
}

// What times on a GPU other than the measured one rest on.
std::string carried_from(const Device& device, const CostModels& cost_models, Precision precision) {
  const std::string& measured = cost_models.residual_model->gpu;
  const std::string carried = fmt::format("GPU times carried over from ops measured on the {}", measured);
  switch (distance_to(device, cost_models, precision)) {
    case GpuDistance::none:
      return "GPU times from trees over ops measured on this GPU, corrections of an analytic model";
    case GpuDistance::near:
      return carried + (device.measured == Measured::elsewhere
                            ? ", with op latencies in fp32 that others published of this GPU"
                            : ", a GPU of the same architecture; nothing was measured on this one");
    case GpuDistance::far:
      return fmt::format("{}, by rates, bandwidth and watts of the data sheet: nothing was measured in {} on the {}",
                         carried, name_of(precision), device.name);
    case GpuDistance::beyond: break;
  }
  if (device.power_w <= 0) return carried + "; what the board may draw is not known, and taken to be enough";
  if (cost_models.scale.sustained(device) < 1) {
    return fmt::format("{}; which of its rates the {} sustains with {:g} W is estimated: nothing was measured there",
                       carried, device.name, device.power_w);
  }
  return fmt::format("{}, by rates and bandwidth of the data sheet: no GPU of this architecture{} was ever measured",
                     carried, device.is_nvidia() ? "" : " or vendor");
}

std::vector<std::string> usual_assumptions(const Prediction& p, const Device& device, const CostModels& cost_models,
                                           bool host_read) {
  const std::string gpu_times = !cost_models.residual_model
                                    ? "GPU times from an analytic model that is not fitted: expect some tens of percent"
                                    : carried_from(device, cost_models, p.setup.precision);
  return {
      "steady state of back-to-back iterations, inputs already on the GPU, gradients set to none each iteration",
      gpu_times,
      host_read ? "host times of one server with eager PyTorch 2.11, scaled by readings of this host"
                : "host times of one server with eager PyTorch 2.11: machines of the same kind differ by 10 %, others "
                  "by more",
      "memory from three iterations through a simulation of PyTorch's allocator, with cuDNN's workspaces on an H200",
  };
}

std::vector<std::string> assumptions_of(const Prediction& p, const Device& device) {
  std::vector<std::string> list;
  if (std::string caveat = derive::precision_caveat(p.setup.precision, device); !caveat.empty()) {
    list.push_back(std::move(caveat));
  }
  if (std::string caveat = derive::target_caveat(device); !caveat.empty()) list.push_back(std::move(caveat));
  if (p.setup.loop != TrainingLoop::plain) {
    list.push_back(fmt::format("the {} loop does what it does by default; batches are ready when it asks for them",
                               name_of(p.setup.loop)));
  }
  if (p.setup.checkpointing != Checkpointing::none) {
    list.emplace_back("what the host does around checkpointed blocks is in the range alone, not in the time");
  }
  if (p.setup.quantize.any()) {
    list.emplace_back(
        "bitsandbytes' kernels were never measured here: weights are copied at the speed of memory, up to half of that "
        "in the range; "
        "what its Python costs the host is in the range alone");
  }
  if (p.setup.quantize.any() && p.memory_answer.parallel.zero == 3) {
    list.emplace_back(
        "quantized weights are sharded like all others, which needs 4 bits and bnb_4bit_quant_storage; their scales "
        "stay whole");
  }
  if (p.setup.quantize.format == WeightFormat::int8) {
    list.emplace_back("no activations are outliers (6 or more), whose columns LLM.int8() multiplies apart");
    if (device.peak.int8_tensor <= 0) {
      list.push_back("a " + device.name + " has no int8 tensor cores: bitsandbytes may refuse int8 there");
    }
  }
  if (p.setup.quantize.compute == DType::bfloat16 && device.peak.bf16_tensor <= 0) {
    list.push_back("a " + device.name + " has no bfloat16 units: PyTorch refuses bfloat16 there, or emulates it");
  }
  if (p.setup.compile != CompileMode::none) {
    list.emplace_back(
        "the compiled iteration; `forerun predict MODEL --compile` has it beside the eager one (docs/compile.md)");
  }
  int64_t unknown = 0;
  for (const auto& [name, count] : p.unknown_ops) unknown += count;
  if (p.memory_answer.parallel.any()) {
    list.emplace_back("times are of one GPU alone: communication is not among them, nor are NCCL's own buffers");
  }
  if (unknown > 0)
    list.push_back(
        fmt::format("{} ops of {} kinds have no rule: costed by their bytes", unknown, p.unknown_ops.size()));
  return list;
}

}  // namespace

std::vector<OpCost> default_gpu_costs(const Graph& graph, const TrainingSetup& asked, const Device& device,
                                      const CostModels& cost_models) {
  const TrainingSetup setup = derive::setup_on(asked, device);
  if (!cost_models.residual_model) return analytic_costs(graph, device, setup, cost_models.analytic);
  std::optional<hybrid::OtherGpu> other;
  if (const auto measured = cost_models.devices.find(cost_models.residual_model->gpu);
      measured && measured->name != device.name) {
    other = hybrid::OtherGpu{*measured, cost_models.scale};
  }
  return hybrid::hybrid_costs(graph, device, setup, cost_models.analytic, *cost_models.residual_model, other);
}

void calibrate_costs(const Graph& graph, const TrainingSetup& setup, const Device& device,
                     const CostModels& cost_models, std::vector<OpCost>& costs) {
  if (cost_models.machine == nullptr || !cost_models.machine->corrects(device, cost_models)) return;
  cost_models.machine->correction(cost_models)
      .apply(graph, device, derive::setup_on(setup, device), cost_models.analytic, costs);
}

std::vector<OpCost> gpu_costs(const TrainingRun& run, const Device& device, const CostModels& cost_models) {
  std::vector<OpCost> costs = default_gpu_costs(run.graph, run.setup, device, cost_models);
  finish_costs(run, device, cost_models, costs);
  return costs;
}

void finish_costs(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                  std::vector<OpCost>& costs) {
  calibrate_costs(run.graph, run.setup, device, cost_models, costs);
  if (run.compiled == nullptr) return;
  cost_compiled(run.graph, *run.compiled, run.setup.compile, device, cost_models.compile, costs);
}

namespace {

// Whether some tensors are as large as values make them.
bool sizes_vary(const Graph& graph) {
  ValueReads values(graph);
  return std::any_of(graph.ops().begin(), graph.ops().end(), [&](const Op& op) { return values.chooses(op); });
}

// What the host does around checkpointed blocks, hooks for each saved tensor and, where it is selective, a Python dispatch mode, is in
// no op: iterations that the host bounds took up to so many times as long as predicted.
double unseen_host_time(const Prediction& p, bool sizes_vary) {
  if (p.times.bound != Bottleneck::host) return 1;
  if (sizes_vary) return 2.1;  // a model with experts chosen one by one: 2.06 times as long, on an H200
  if (p.setup.quantize.any() || p.setup.precision == Precision::amp_fp8)
    return 1.8;  // layers in Python, never measured
  switch (p.setup.checkpointing) {
    case Checkpointing::none: return 1;
    case Checkpointing::block: return 1.2;
    case Checkpointing::selective: return 1.8;
  }
  return 1;
}

// Kernels on quantized weights and in fp8 may take twice their time: none were measured, and they are costed as others.
Nanoseconds unseen_gpu_time(const Graph& graph, const std::vector<OpCost>& costs) {
  std::vector<bool> quantized(graph.names().size());
  bool any = false;
  for (size_t i = 0; i < quantized.size(); ++i) {
    const std::string& name = graph.names()[NameId(i)];
    quantized[i] = derive::is_quantized_op(name) || derive::is_fp8_op(name);
    any = any || quantized[i];
  }
  Nanoseconds time;
  for (size_t i = 0; any && i < graph.op_count(); ++i) {
    if (quantized[graph.ops()[i].name.value]) time += costs[i].gpu;
  }
  return time;
}

// Where eight of ten measured times lie, by how well the GPU and the host are known.
RatioInterval eager_range(const CostModels& cost_models, const TrainingRun& run, const Device& device,
                          Bottleneck bound) {
  const GpuDistance distance = distance_to(device, cost_models, run.setup.precision);
  const CalibratedIntervals& calibrated = cost_models.calibrated;
  const bool read = cost_models.machine != nullptr && cost_models.machine->reads(device);
  if (bound != Bottleneck::host) {
    const RatioInterval usual = interval_of(cost_models.intervals, false, distance);
    if (!read || distance == GpuDistance::none) return usual;
    return calibrated.gpu_with(cost_models.machine->machine().ops.size()).value_or(usual);
  }
  // Readings without a GPU make the time better and the range no narrower: how they relate was seen on one machine.
  const bool without_gpu = cost_models.machine != nullptr && !cost_models.machine->host_with_gpu();
  const std::optional<RatioInterval>& host =
      host_is_calibrated(cost_models, run) && !without_gpu ? calibrated.calibrated_host : calibrated.default_host;
  const bool known = distance == GpuDistance::none || read;
  if (!host) return interval_of(cost_models.intervals, true, known ? GpuDistance::none : distance);
  if (known) return *host;
  const RatioInterval other = interval_of(cost_models.intervals, true, distance);
  return {std::min(host->low, other.low), std::max(host->high, other.high)};
}

RatioInterval range_for(const CostModels& cost_models, const TrainingRun& run, const Device& device, Bottleneck bound) {
  const RatioInterval eager = eager_range(cost_models, run, device, bound);
  if (run.compiled == nullptr) return eager;
  return compiled_interval(cost_models, run.setup.compile, bound == Bottleneck::host,
                           distance_to(device, cost_models, run.setup.precision), eager);
}

void add_range(const RatioInterval& range, Nanoseconds unseen, bool sizes_vary, Prediction& p) {
  const auto times = [&](double factor) {
    return Nanoseconds(std::llround(static_cast<double>(p.times.iteration.value) * factor));
  };
  p.p10 = times(range.low);
  p.p90 = times(range.high * unseen_host_time(p, sizes_vary)) + unseen;
}

// The lanes of an iteration, and how they are run.
struct IterationLanes {
  std::vector<LaneOp> ops;
  LaneSetup setup;
};

IterationLanes lanes_of(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                        const std::vector<OpCost>& costs) {
  const double speed = host_speed(cost_models, run);
  HostCosts host =
      issue_costs(run.graph, run.setup, run.compiled.get(), costs, cost_models.host, cost_models.compile, speed);
  host.loop = loop_cost(run.setup, cost_models.loops, speed);
  return {lane_ops(run.graph, costs, host, rules_of(run.setup.loop)),
          {.gap = device.launch_gap, .per_iteration = host.per_iteration}};
}

void add_rates(Prediction& p) {
  const double seconds = static_cast<double>(p.times.iteration.value) * 1e-9;
  if (seconds <= 0) return;
  p.samples_per_second = static_cast<double>(p.input.batch * p.setup.accumulate) / seconds;
  if (p.input.kind == InputKind::tokens) p.tokens_per_second = p.samples_per_second * static_cast<double>(p.input.size);
}

}  // namespace

Status set_job(const JobLength& length, const Device& device, std::optional<double> price, Prediction& prediction) {
  if (!length.any()) return {};
  if (prediction.memory_answer.parallel.any()) {
    return Error{
        "the hours of a run on several GPUs take what they say to each other, which is not predicted here",
        "--ddp, --zero, --gpus",
        "leave them out, or ask `forerun scale MODEL --gpus N --strategy zero3`, which takes the same lengths"};
  }
  const InputSpec& input = prediction.input;
  const Result<int64_t> iterations =
      length.in_iterations({.samples = input.batch * prediction.setup.accumulate,
                            .tokens_each = input.kind == InputKind::tokens ? input.size : 0});
  if (!iterations) return iterations.error();
  JobTime job = job_time(*iterations, prediction.parts);
  const auto iteration = static_cast<double>(std::max<int64_t>(prediction.times.iteration.value, 1));
  job.p10 = job.hours * (static_cast<double>(prediction.p10.value) / iteration);
  job.p90 = job.hours * (static_cast<double>(prediction.p90.value) / iteration);
  job.price = price;
  set_energy({.power_w = device.power_w, .busy = static_cast<double>(prediction.times.gpu_busy.value) / iteration},
             job);
  prediction.job = job;
  return {};
}

TrainingSetup chosen_setup(const ModelRequest& request, InputKind kind) {
  TrainingSetup setup = request.setup;
  if (!request.default_optimizer) return setup;
  if (rules_of(setup.loop).prefers_fused_adamw) {
    setup.optimizer.kind = OptimizerKind::adamw;
    setup.optimizer.impl = OptimizerImpl::fused;
    return setup;
  }
  if (kind == InputKind::tokens) {
    setup.optimizer.kind = OptimizerKind::adamw;
    setup.optimizer.weight_decay = 0.01;
  } else {
    setup.optimizer.kind = OptimizerKind::sgd;
    setup.optimizer.momentum = 0.9;
  }
  return setup;
}

std::vector<std::pair<std::string, std::string>> zoo_settings(const ModelRequest& request) {
  auto settings = request.settings;
  for (auto& [name, value] : settings) {
    if (name == "seq") name = "length";
  }
  if (request.batch) settings.emplace_back("batch", fmt::format("{}", *request.batch));
  if (request.setup.attention == Attention::eager) settings.emplace_back("attention", "eager");
  return settings;
}

Result<ForwardModel> zoo_model(const ModelRequest& request) {
  Result<zoo::Model> model = zoo::build(request.model, zoo_settings(request));
  if (!model) return model.error();
  return ForwardModel{model->shown_family(), model->input, std::move(model->forward), std::move(model->notes)};
}

Result<TrainingRun> build_zoo_run(const ModelRequest& request, const Device& device) {
  const Result<ForwardModel> model = zoo_model(request);
  if (!model) return model.error();
  return run_of(*model, request, device);
}

Result<TrainingRun> run_of(const ForwardModel& model, const ModelRequest& request, const Device& device) {
  if (const Status status = derive::check_precision(request.setup.precision, device); !status.ok()) {
    return status.error();
  }
  TrainingRun run;
  run.id = request.model;
  run.family = model.family;
  run.input = model.input;
  run.setup = chosen_setup(request, model.input.kind);
  run.environment.gpu = device.name;
  Result<Graph> graph =
      derive::derive_iteration(model.forward, model.input, run.setup, derive::target_of(device, run.setup, run.input));
  if (!graph) return graph.error().within(request.model);
  run.graph = std::move(*graph);
  run.assumed = model.notes;
  return compiled_run(std::move(run), device);
}

Result<TrainingRun> for_device(TrainingRun run, const Device& device) {
  if (const Status status = derive::check_precision(run.setup.precision, device); !status.ok()) return status.error();
  const bool generic = run.backend == Backend::generic;
  if (!generic && !derive::lacks_forms(run.graph)) return run;
  Result<Graph> graph =
      generic ? derive::to_cuda_forms(run.graph, derive::target_of(device, run.setup, run.input, run.dynamo.get()))
              : derive::with_forms(run.graph);
  if (!graph) return graph.error();
  run.graph = std::move(*graph);
  run.backend = Backend::cuda;
  return run;
}

IterationTiming predicted_times(const TrainingRun& run, const Device& device, const CostModels& cost_models) {
  const IterationLanes lanes = lanes_of(run, device, cost_models, gpu_costs(run, device, cost_models));
  return host_gpu_timeline(lanes.ops, lanes.setup);
}

Prediction predicted_speed(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                           const std::vector<OpCost>& costs) {
  Prediction p;
  p.id = run.id;
  p.model = run.family;
  p.gpu = device.name;
  p.input = run.input;
  p.setup = run.setup;
  p.parameters = run.graph.parameter_count();
  p.ops = static_cast<int64_t>(run.graph.op_count());
  const IterationLanes lanes = lanes_of(run, device, cost_models, costs);
  p.times = host_gpu_timeline(lanes.ops, lanes.setup);
  if (p.times.bound == Bottleneck::host && run.compiled == nullptr) {
    if (auto remedy = cuda_graph_remedy(lanes.ops, lanes.setup, p)) p.remedies.push_back(std::move(*remedy));
  }
  const bool vary = sizes_vary(run.graph);
  add_range(range_for(cost_models, run, device, p.times.bound), unseen_gpu_time(run.graph, costs), vary, p);
  p.parts = time_parts(costs, p.times.iteration);
  add_rates(p);
  p.warnings = run.warnings;
  if (vary && p.times.bound == Bottleneck::host) {
    p.warnings.emplace_back(
        "sizes that change from iteration to iteration (nonzero, masks as indices) keep PyTorch's allocator from using "
        "memory "
        "again; what that costs the host is in the range alone: up to twice the time");
  }
  return p;
}

void set_memory(PredictedMemory memory, const Device& device, Prediction& prediction) {
  prediction.memory = memory.estimate;
  prediction.context = memory.context;
  prediction.device_memory = device.memory;
  prediction.fits = memory.fits;
  prediction.memory_answer = std::move(memory.answer);
}

Prediction predict(const TrainingRun& run, const Device& device, const CostModels& cost_models,
                   const MemoryQuestion& question, unsigned threads, std::vector<OpCost>* ops) {
  MemoryQuestion asked = question;
  asked.moment = true;
  asked.intervals = memory_intervals_of(cost_models, run.setup.compile);
  Prediction p;
  PredictedMemory memory;
  parallel_for(2, std::max(threads, 1U), [&](size_t part) {
    if (part == 0) memory = predicted_memory(run, device, cost_models.workspaces, asked);
    if (part == 0) return;
    std::vector<OpCost> costs = gpu_costs(run, device, cost_models);
    p = predicted_speed(run, device, cost_models, costs);
    add_costs(run.graph, costs, p);
    if (ops != nullptr) *ops = std::move(costs);
  });
  set_memory(std::move(memory), device, p);
  const bool host_read = cost_models.machine != nullptr && host_is_calibrated(cost_models, run);
  p.usual_assumptions = usual_assumptions(p, device, cost_models, host_read);
  p.assumptions = assumptions_of(p, device);
  if (std::string told = calibration_told(cost_models, device, run); !told.empty()) {
    p.assumptions.push_back(std::move(told));
  }
  p.assumptions.insert(p.assumptions.end(), run.assumed.begin(), run.assumed.end());
  return p;
}

}  // namespace forerun
