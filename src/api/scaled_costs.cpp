#include "api/scaled_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>

#include "cost/analytic/analytic.h"
#include "cost/analytic/full_machine.h"
#include "derive/context_parallel.h"
#include "derive/expert_parallel.h"
#include "derive/iteration.h"
#include "derive/repeated_blocks.h"
#include "derive/tensor_parallel.h"
#include "derive/tensor_splits.h"
#include "derive/work.h"
#include "graph/op_modules.h"
#include "predict/model_file.h"
#include "predict/predict.h"
#include "predict/predicted_memory.h"
#include "scale/graph_cost.h"
#include "scale/replica_schedule.h"
#include "scale/step_parts.h"
#include "scale/transformer_cost.h"
#include "timeline/sharded_exchange.h"

namespace forerun {
namespace {

// Of the whole model, nothing run twice.
scale::ProductWork product_work(const Graph& graph, const Device& gpu, Precision precision,
                                const scale::RepeatedBlock& repeated, int64_t tensor) {
  scale::ProductWork sum;
  const std::vector<NameId> modules = op_modules(graph);
  const ModuleBlocks blocks(graph);
  for (size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.phase == Phase::update || runs_again(graph, op)) continue;
    const OpWork work = work_of(graph, op);
    if (work.gemm_count == 0 || !work.on_gpu) continue;
    const bool again = repeated.others > 0 && blocks.of(graph.names()[modules[i]]) == repeated.name;
    const double flops = work.flops.value * static_cast<double>(tensor * (again ? 1 + repeated.others : 1));
    sum.flops += flops;
    sum.peak_seconds += flops / gpu.rate(arithmetic_unit(work, precision));
  }
  return sum;
}

ModelRequest request_of(const ScaleQuestion& question, const ScaledModel& model, const scale::Cut& cut) {
  ModelRequest request{.model = question.model,
                       .file = model.file,
                       .settings = question.settings,
                       .setup = model.setup,
                       .default_optimizer = false};
  if (cut.checkpoint) request.setup.checkpointing = Checkpointing::block;
  if (cut.selective) request.setup.checkpointing = Checkpointing::selective;
  if (cut.micro_batch != model.own_batch) request.batch = cut.micro_batch;
  if (cut.experts > 1 && model.tables > 0) request.settings.emplace_back("dealt", std::to_string(cut.experts));
  if (cut.context > 1) {
    std::erase_if(request.settings, [](const auto& setting) { return setting.first == "length"; });
    request.settings.emplace_back("length", std::to_string(model.sequence / cut.context));
  }
  return request;
}

// What its iteration's graph can be cut into.
Status check_cut(const ScaledModel& model, const scale::Cut& cut) {
  if (cut.sequence) {
    return Error{"sequence parallelism is Megatron's: eager PyTorch's graph is not divided so", "--strategy sp",
                 "take --stack megatron (gpt2, llama, bert), or leave out sp"};
  }
  if (cut.context == 1) return {};
  if (model.sequence == 0 || model.file == FileKind::onnx_model) {
    return Error{"only sequences of tokens of a model known by name or config.json are divided", "--strategy cp",
                 "leave out cp"};
  }
  // Two parts a GPU, one of the beginning and one of the end, so that causal attention is the same work for all.
  if (model.sequence % (2 * cut.context) != 0) {
    return Error{
        fmt::format("sequences of {} tokens are not divided by {} GPUs in two parts each", model.sequence, cut.context),
        "--strategy cp", "choose cp=N so that twice as much divides the sequence"};
  }
  return {};
}

// The forward pass on a GPU of the plan's groups.
Result<ForwardModel> shared_forward(const ScaleQuestion& question, const ScaledModel& model,
                                    const ModelRequest& request, const scale::Cut& cut) {
  if (const Status status = check_cut(model, cut); !status) return status.error();
  auto forward = forward_model(request);
  if (!forward) return forward.error();
  auto shared = derive::tensor_parallel(forward->forward, cut.tensor);
  if (shared) shared = derive::context_parallel(*shared, cut.context);
  if (shared && model.tables == 0) shared = derive::expert_parallel(*shared, cut.experts);
  if (!shared) return shared.error().within(question.model);
  forward->forward = std::move(*shared);
  return forward;
}

// The iteration of one micro-batch on a GPU of a tensor group. `repeated`: may be null; else blocks that repeat are left out,
// and told there.
Result<TrainingRun> run_of(const ScaleQuestion& question, const ScaledModel& model, const Device& gpu,
                           const scale::Cut& cut, scale::RepeatedBlock* repeated = nullptr) {
  const ModelRequest request = request_of(question, model, cut);
  if (model.file == FileKind::records) {
    const bool as_recorded = cut.tensor == 1 && cut.context == 1 && cut.experts == 1;
    if (as_recorded && !cut.checkpoint && !cut.selective) return build_run(request, gpu);
    return Error{"a captured iteration is taken as it was recorded: its layers are not shared, nor run twice",
                 "--strategy",
                 "take the model's name, config.json or ONNX file, or leave out tp, cp, ep, checkpoint and selective"};
  }
  auto forward = shared_forward(question, model, request, cut);
  if (!forward) return forward.error();
  if (repeated != nullptr) {
    derive::ShortForward brief = derive::without_repeats(forward->forward);
    *repeated = {brief.block, brief.others};
    forward->forward = std::move(brief.graph);
  }
  return forerun::run_of(*forward, request, gpu);
}

struct GraphTimes {
  std::vector<OpCost> costs;
  HostCosts host;
  IterationTiming lanes;
};

void slow_down(std::vector<OpCost>& costs, double times) {
  const auto longer = [&](Nanoseconds time) {
    return Nanoseconds(std::llround(static_cast<double>(time.value) * times));
  };
  for (OpCost& cost : costs) {
    cost.gpu = longer(cost.gpu);
    cost.overlapped = longer(cost.overlapped);
  }
}

// What an op exchanges within a tensor, context or expert group; nothing where it is none of these.
std::optional<Nanoseconds> exchange_time(const Graph& graph, const Op& op, const scale::Network& network,
                                         const scale::Cut& cut) {
  const std::string_view name = graph.name(op);
  const auto of = [&](std::span<const TensorId> operands) { return graph.bytes_of(operands[0]); };
  const scale::Group context{cut.context, cut.tensor};
  if (name == derive::kGroupReduction) return network.all_reduce(of(graph.outputs(op)), {cut.tensor, 1});
  if (name == derive::kSequenceGathering) return network.all_gather(of(graph.outputs(op)), context);
  if (name == derive::kSequenceScattering) return network.reduce_scatter(of(graph.inputs(op)), context);
  if (name == derive::kRowSwap) {
    return network.all_to_all(of(graph.inputs(op)), {cut.experts, cut.tensor * cut.context});
  }
  return std::nullopt;
}

// As `predict` has them, with what the plan's groups exchange as ops of the stream.
GraphTimes graph_times(const TrainingRun& run, const scale::StepSetup& setup, const scale::Cut& cut,
                       const CostModels& cost_models) {
  const Device& gpu = setup.cluster.gpu;
  GraphTimes times;
  times.costs = gpu_costs(run, gpu, cost_models);
  if (setup.cluster.gpus > 1)
    slow_down(times.costs, full_machine_slowdown(run.graph, times.costs, gpu, run.setup.precision));
  const scale::Network network(setup.cluster, setup.efficiency);
  const bool exchanges = cut.tensor * cut.context * cut.experts > 1;
  for (size_t i = 0; exchanges && i < run.graph.op_count(); ++i) {
    const auto time = exchange_time(run.graph, run.graph.ops()[i], network, cut);
    if (time) times.costs[i] = {.gpu = *time, .overlapped = {}, .kernels = 1, .bound = Bound::latency};
  }
  times.host = issue_costs(run.graph, run.setup, run.compiled.get(), times.costs, cost_models.host, cost_models.compile,
                           host_speed(cost_models, run));
  times.lanes = host_gpu_timeline(lane_ops(run.graph, times.costs, times.host, rules_of(run.setup.loop)),
                                  {.gap = gpu.launch_gap, .per_iteration = times.host.per_iteration});
  return times;
}

// The refusal of a tensor group, with the nearest that the cluster can have in place of the nearest there are.
Error tensor_fault(const ScaleQuestion& question, const ScaledModel& model, const scale::GpuCluster& cluster,
                   const scale::Cut& cut, Error error) {
  if (cut.tensor == 1 || error.remedy.find("choose tp") == std::string::npos) return error;
  const auto forward = forward_model(request_of(question, model, cut));
  if (!forward) return error;
  error.remedy = scale::nearest_tensor_groups(cut.tensor, cluster.gpus, cluster.node, [&](int64_t group) {
    return derive::tensor_splits(forward->forward, group).ok();
  });
  return error;
}

Result<scale::ModelCosts> costs_of_graph(const ScaleQuestion& question, const ScaledModel& model,
                                         const scale::StepSetup& setup, const CostModels& cost_models,
                                         const scale::Cut& cut, bool whole) {
  scale::RepeatedBlock repeated;
  auto run = run_of(question, model, setup.cluster.gpu, cut, whole ? nullptr : &repeated);
  if (!run) return tensor_fault(question, model, setup.cluster, cut, run.error());
  GraphTimes times = graph_times(*run, setup, cut, cost_models);
  if (repeated.others > 0 && times.lanes.bound == Bottleneck::host) {  // the host's part is not that of a block
    return costs_of_graph(question, model, setup, cost_models, cut, true);
  }
  scale::ModelCosts costs = scale::graph_costs(
      *run, times.costs, times.host, times.lanes,
      product_work(run->graph, setup.cluster.gpu, run->setup.precision, repeated, cut.tensor * cut.context), repeated);
  costs.tokens_per_sample *= cut.context;
  return costs;
}

}  // namespace

scale::CostSource cost_source(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                              const CostModels& cost_models, bool whole) {
  if (model.transformer) {
    return [&model, &setup](const scale::Cut& cut) {
      return scale::transformer_costs(
          *model.transformer, setup.cluster, setup.efficiency,
          {.unit = setup.unit, .gradient = setup.bytes.gradient, .update_bytes = update_bytes(model), .fp8 = setup.fp8},
          cut);
    };
  }
  // By cut, of one GPU apart from many.
  auto known = std::make_shared<std::map<std::pair<scale::Cut, bool>, Result<scale::ModelCosts>>>();
  return [&, known, whole](const scale::Cut& cut) -> Result<scale::ModelCosts> {
    const std::pair asked(cut, setup.cluster.gpus > 1);
    const auto found = known->find(asked);
    if (found != known->end()) return found->second;
    return known->emplace(asked, costs_of_graph(question, model, setup, cost_models, cut, whole)).first->second;
  };
}

namespace {

constexpr int64_t kMicroBatches = 16;       // of an iteration that is derived; further ones take as long as the last
constexpr int64_t kMicroBatchesBeside = 4;  // the same of replicas

// The iteration of so many micro-batches whose gradients are added up.
Result<TrainingRun> accumulated_run(const ScaleQuestion& question, const ScaledModel& model, const Device& gpu,
                                    const scale::Cut& cut, int64_t micro_batches) {
  ScaledModel trained = model;
  trained.setup.accumulate = micro_batches;
  return run_of(question, trained, gpu, cut);
}

// What `predict` says of it.
Result<Prediction> predicted_passes(const ScaleQuestion& question, const ScaledModel& model, const Device& gpu,
                                    const CostModels& cost_models, const scale::Cut& cut, int64_t micro_batches) {
  const auto run = accumulated_run(question, model, gpu, cut, micro_batches);
  if (!run) return run.error();
  return predicted_speed(*run, gpu, cost_models, gpu_costs(*run, gpu, cost_models));
}

// As many times more what the last micro-batch added.
TimeParts further_parts(const TimeParts& last, const TimeParts& before, int64_t times) {
  const auto further = [&](Nanoseconds TimeParts::*part) {
    return std::max(last.*part + (last.*part - before.*part) * times, Nanoseconds());
  };
  return {.computation = further(&TimeParts::computation),
          .memory_access = further(&TimeParts::memory_access),
          .latency = further(&TimeParts::latency),
          .idle = further(&TimeParts::idle)};
}

Nanoseconds passes_of(const Prediction& prediction) { return prediction.times.iteration - prediction.times.phases[2]; }

}  // namespace

Status refine_passes(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                     const CostModels& cost_models, scale::Step& step) {
  const scale::Plan& plan = step.plan;
  const Device& gpu = setup.cluster.gpu;
  if (model.transformer || plan.tensor * plan.context * plan.experts * plan.pipeline > 1) return {};
  const bool alone = plan.gpus() == 1;
  // A capture has one micro-batch; ZeRO 2 and 3 add up shards, which is next to nothing.
  const bool adds = plan.micro_batches > 1 && model.file != FileKind::records && plan.zero < 2;
  const int64_t most = alone ? kMicroBatches : kMicroBatchesBeside;
  const int64_t played = adds ? std::min(plan.micro_batches, most) : 1;
  const auto last = predicted_passes(question, model, gpu, cost_models, cut_of(plan), played);
  if (!last) return last.error();
  Nanoseconds passes = passes_of(*last);
  TimeParts parts = last->parts;
  if (plan.micro_batches > played) {
    const auto before =
        played > 1 ? predicted_passes(question, model, gpu, cost_models, cut_of(plan), played - 1) : last;
    if (!before) return before.error();
    const Nanoseconds each = played > 1 ? passes - passes_of(*before) : passes;
    passes += each * (plan.micro_batches - played);
    if (played > 1) parts = further_parts(parts, before->parts, plan.micro_batches - played);
  }
  const double whole = milliseconds(last->times.iteration);
  step.computation = {milliseconds(last->p10) / whole, milliseconds(last->p90) / whole};
  if (alone) {
    set_passes(step, passes, plan.offload ? step.update : last->times.phases[2]);
    if (!plan.offload) step.parts = parts.of(step.time);
  } else if (adds) {
    const auto one = predicted_passes(question, model, gpu, cost_models, cut_of(plan), 1);
    if (!one) return one.error();
    set_passes(step, step.compute + passes - passes_of(*one) * plan.micro_batches, step.update);
  }
  scale::set_range(step, setup);
  return {};
}

Status refine_exchange(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                       const CostModels& cost_models, scale::Step& step) {
  const scale::Plan& plan = step.plan;
  if (model.transformer) {
    if (plan.schedule == scale::Schedule::buckets) return {};
    return Error{fmt::format("{} is not a schedule that Megatron has", name_of(plan.schedule)), "--strategy",
                 "its gradients travel layer by layer: leave it out, or take --stack pytorch"};
  }
  if (plan.pipeline > 1 || plan.replicas() < 2 || plan.exchange == scale::Exchange::servers_async) return {};
  if (plan.experts > 1 || plan.shard > 0 || !plan.reshard) return {};  // groups of several kinds: block by block
  if (plan.zero > 1 && plan.micro_batches > 1) return {};              // each micro-batch exchanges: block by block
  if (plan.offload) return {};                                         // the host's update is no task of the GPU's
  if (plan.zero > 1 && !plan.overlap) return {};                       // all behind the pass: block by block
  if (plan.zero == 3 && setup.compiled) return {};  // FSDP gathers around blocks, which generated kernels do not heed
  const auto run = run_of(question, model, setup.cluster.gpu, cut_of(plan));
  if (!run) return run.error();
  const GraphTimes times = graph_times(*run, setup, cut_of(plan), cost_models);
  const auto tasks = model_tasks(run->graph, times.costs,
                                 {.gap = setup.cluster.gpu.launch_gap,
                                  .host = &times.host,
                                  .rules = rules_of(run->setup.loop),
                                  .compiled = run->compiled.get()});
  if (!tasks) return tasks.error();
  const auto replicas = scale::replica_times(*tasks, plan, setup.cluster, setup.efficiency,
                                             gathered_share(plan.zero, model.setup.precision));
  if (!replicas) return replicas.error();
  const Nanoseconds computed = times.lanes.phases[0] + times.lanes.phases[1] + step.update;
  scale::set_exchange(step, replicas->exchange, std::max(replicas->iteration - computed, Nanoseconds()));
  scale::set_range(step, setup);
  return {};
}

namespace {

// What a replay says of a GPU, in place of the rules.
void set_memory(const PredictedMemory& memory, const scale::Plan& plan, const Device& gpu, scale::Step& step) {
  const MemoryEstimate& estimate = memory.estimate;
  const Bytes shard(plan.reshard ? 0 : estimate.parameters.value / plan.shards());  // beside what is gathered
  step.memory.parameters = estimate.parameters + estimate.buffers + shard;
  step.memory.gradients = estimate.gradients;  // those that are added up too
  step.memory.states = estimate.optimizer_state;
  step.memory.activations = estimate.activations + estimate.inputs;
  step.memory.transient = estimate.peak_reserved + shard - step.memory.parameters - step.memory.gradients -
                          step.memory.states - step.memory.activations;
  step.memory.context = memory.context;
  step.fits = memory.fits && step.memory.total() <= gpu.memory;
}

constexpr size_t kReplayedStages = 4;  // those that need most by the rules

// The stages to replay, by device.
std::vector<size_t> largest_stages(const scale::PlanParts& parts, const scale::Plan& plan,
                                   const scale::StateBytes& bytes) {
  const std::vector<scale::MemoryUse> by_rules = memory_by_device(parts.costs.blocks, parts.stages, plan, bytes);
  std::vector<size_t> devices(by_rules.size());
  std::iota(devices.begin(), devices.end(), size_t{0});
  std::stable_sort(devices.begin(), devices.end(),
                   [&](size_t a, size_t b) { return by_rules[a].total() > by_rules[b].total(); });
  devices.resize(std::min(devices.size(), kReplayedStages));
  return devices;
}

// Stages of a pipeline in the order of 1F1B.
Status replay_stages(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                     const CostModels& cost_models, const scale::CostSource& costs, scale::Step& step) {
  const scale::Plan& plan = step.plan;
  const Device& gpu = setup.cluster.gpu;
  const auto parts = scale::parts_of(costs, setup, plan);
  if (!parts) return parts.error();
  const scale::Cut cut = cut_of(plan);
  const ModelRequest request = request_of(question, model, cut);
  const auto forward = shared_forward(question, model, request, cut);
  if (!forward) return forward.error();
  std::vector<size_t> begins = scale::block_begins(forward->forward);
  if (begins.size() != parts->costs.blocks.size()) return {};  // blocks that the iteration alone has: by the rules
  begins.push_back(forward->forward.op_count());
  TrainingRun run;
  run.input = forward->input;
  run.setup = chosen_setup(request, forward->input.kind);
  MemoryQuestion asked;
  asked.parallel = {.gpus = plan.shards(), .replicas = true, .zero = plan.zero};
  bool fits = true;
  std::optional<PredictedMemory> most;
  for (const size_t device : largest_stages(*parts, plan, setup.bytes)) {
    const scale::BlockRange& blocks = parts->stages[device];
    const derive::StageForward stage =
        derive::stage_forward(forward->forward, blocks.begin == 0 ? 0 : begins[blocks.begin], begins[blocks.end]);
    const int64_t ahead = std::min(plan.pipeline - static_cast<int64_t>(device), plan.micro_batches);
    // Two more micro-batches than are in flight: gradients are added up, and memory is used again.
    const derive::StageSchedule schedule{ahead, std::min(plan.micro_batches, ahead + 2)};
    auto graph =
        derive::derive_stage(stage, schedule, run.input, run.setup, derive::target_of(gpu, run.setup, run.input));
    if (!graph) return graph.error().within(question.model);
    run.graph = std::move(*graph);
    const PredictedMemory memory = predicted_memory(run, gpu, cost_models.workspaces, asked);
    fits = fits && memory.fits;
    if (!most || memory.estimate.peak_reserved > most->estimate.peak_reserved) most = memory;
  }
  set_memory(*most, plan, gpu, step);
  step.fits = step.fits && fits;
  return {};
}

}  // namespace

Status replay_memory(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                     const CostModels& cost_models, const scale::CostSource& costs, scale::Step& step) {
  const scale::Plan& plan = step.plan;
  if (model.transformer) return {};
  if (plan.zero > 0 && plan.experts > 1) return {};  // experts and the rest are divided by different numbers of GPUs
  ScaledModel trained = model;
  if (plan.offload) {  // an update that keeps nothing on the GPU, and makes nothing there
    trained.setup.optimizer = {.kind = OptimizerKind::sgd, .impl = OptimizerImpl::fused};
  }
  if (plan.pipeline > 1) {
    // Of interleaved stages, and captures, which are not taken apart, by the rules.
    if (plan.chunks > 1 || model.file == FileKind::records) return {};
    return replay_stages(question, trained, setup, cost_models, costs, step);
  }
  // On one GPU the iteration of `predict`; of replicas what one micro-batch's becomes where gradients are there from before.
  const bool alone = plan.gpus() == 1 && model.file != FileKind::records;
  const auto run = accumulated_run(question, trained, setup.cluster.gpu, cut_of(plan),
                                   alone ? std::min(plan.micro_batches, kMicroBatches) : 1);
  if (!run) return run.error();
  MemoryQuestion asked;
  asked.parallel = {.gpus = plan.shards(), .replicas = true, .zero = plan.reshard ? plan.zero : 2};
  asked.accumulating = plan.micro_batches > 1 && !alone;
  set_memory(predicted_memory(*run, setup.cluster.gpu, cost_models.workspaces, asked), plan, setup.cluster.gpu, step);
  return {};
}

}  // namespace forerun
