#include "api/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "api/scaled_costs.h"
#include "base/check.h"
#include "base/data_dir.h"
#include "cost/analytic/full_machine.h"
#include "cost/collective/link_name.h"
#include "predict/machine_calibration.h"
#include "scale/offload.h"
#include "scale/plan.h"
#include "scale/search.h"
#include "timeline/contention.h"
#include "timeline/sharded_exchange.h"

namespace forerun {
namespace {

constexpr int64_t kMostStages = 128;
constexpr int64_t kFewStages = 8;  // of models that are not made of equal layers
constexpr int64_t kTokensOfContext =
    8192;                        // of a sequence that a GPU of a context group has at the least, as Llama 3 had
constexpr size_t kSettled = 10;  // plans of a search of which all is said that is known, at the least

Result<scale::GpuCluster> scale_cluster(const ScaleQuestion& question, const CostModels& cost_models) {
  auto gpu = asked_gpu(question.gpu, cost_models);
  if (!gpu) return gpu.error();
  scale::GpuCluster cluster;
  cluster.gpu = *gpu;
  cluster.node = question.node;
  const int64_t largest = *std::max_element(question.gpus.begin(), question.gpus.end());
  cluster.within = link_within(*gpu, std::min(question.node, largest));
  if (!question.within.empty()) {
    auto within = network_by_name(question.within, cost_models.devices);
    if (!within) return within.error().within("--within");
    cluster.within = *within;
  }
  const std::string network = question.network.value_or(usual_network(*gpu, question.node).name);
  auto between = network_by_name(network, cost_models.devices);
  if (!between) return between.error().within("--network");
  cluster.between = *between;
  cluster.between.bandwidth /= question.oversubscription;
  return cluster;
}

Result<scale::Efficiency> chosen_efficiency(const ScaleQuestion& question) {
  std::string file = question.efficiency;
  if (file.empty()) {
    const auto data = data_dir();
    if (!data) return data.error();
    file = (*data / scale::kMegatronEfficiency).string();
  }
  auto efficiency = scale::read_efficiency(file);
  if (!efficiency) return efficiency.error();
  if (!question.plain_attention && !efficiency->fused_attention) {
    efficiency->fused_attention = true;
    efficiency->shapes.clear();  // they are of attention that is not fused
  }
  return efficiency;
}

std::string offload_text(const scale::StepSetup& setup) {
  return fmt::format(
      "offload: gradients leave over PCIe beside the backward pass, the CPUs of a node make the step at {:.0f} % of "
      "{:.0f} GB/s of "
      "memory ({} bytes a parameter, two sockets with eight channels each), and weights come back beside it",
      100 * scale::kHostReach, scale::host_bandwidth(setup.cluster.gpu) / 1e9,
      scale::host_bytes(setup.bytes, setup.megatron));
}

// What is known of plans less well than of others.
std::vector<std::string> plan_caveats(const ScaleAnswer& answer, const ScaledModel& model,
                                      const scale::StepSetup& setup) {
  const auto any = [&](const auto& is) {
    return std::any_of(answer.steps.begin(), answer.steps.end(),
                       [&](const scale::Step& step) { return is(step.plan); }) ||
           (answer.explained && is(answer.explained->plan));
  };
  std::vector<std::string> list;
  std::string unjudged;
  const auto add = [&](bool is, const char* name) {
    if (is) unjudged += (unjudged.empty() ? "" : ", ") + std::string(name);
  };
  add(any([](const scale::Plan& p) { return p.experts > 1; }),
      model.tables > 0 ? "tables dealt out" : "expert parallelism");
  add(any([](const scale::Plan& p) { return p.context > 1; }), "context parallelism");
  add(any([](const scale::Plan& p) { return p.zero_bubble; }), "the zero-bubble schedule");
  add(any([](const scale::Plan& p) { return p.shard > 0; }), "sharding within groups");
  if (!unjudged.empty()) {
    list.push_back(unjudged + ": composed of parts that were judged each by itself, by no measured run as a whole");
  }
  if (any([](const scale::Plan& p) { return p.sequence; })) {
    list.emplace_back("sequence parallelism: held to one published run alone (docs/scale.md)");
  }
  if (any([](const scale::Plan& p) { return p.offload; })) list.push_back(offload_text(setup));
  if (any([](const scale::Plan& p) { return p.experts > 1; })) {
    list.emplace_back(model.tables > 0
                          ? "every GPU holds as many tables, dealt out by size; told of is the one with the largest"
                          : "tokens are spread evenly over the experts, so that no GPU waits for a popular one");
  }
  return list;
}

// The network that nobody named.
std::string network_text(const scale::GpuCluster& cluster) {
  const std::string machine = usual_network(cluster.gpu, cluster.node).machine;
  return fmt::format("nodes are joined by {}{}; --network names another", cluster.between.name,
                     machine.empty() ? ", an assumption" : ", the rails that " + machine + " has for each GPU");
}

std::string risks_text(const scale::RunRisks& risks) {
  const std::string storage =
      risks.storage_rate ? fmt::format("storage that takes {:g} GB/s", *risks.storage_rate / 1e9)
                         : fmt::format("storage that takes {:.2g} GB/s of each node (Llama 3's 2 TB/s of 2,048)",
                                       scale::kUsualStorageRate / 1e9);
  return fmt::format("the whole run: a GPU fails every {:.0f} hours{}, a restart takes {:g} minutes{}, {}{}",
                     risks.mttf_hours.value_or(scale::kUsualMttfHours),
                     risks.mttf_hours ? "" : " (Llama 3: 419 interruptions of 16,384 GPUs in 54 days)",
                     risks.restart_minutes.value_or(scale::kUsualRestartMinutes),
                     risks.restart_minutes ? "" : " (an assumption)", storage,
                     risks.spread > 0 ? "" : "; all GPUs are equally fast (--spread)");
}

// Which iteration it is, of a model that goes by its graph.
std::vector<std::string> iteration_texts(const ScaledModel& model, bool many) {
  const CompileMode mode = model.setup.compile;
  if (mode == CompileMode::none) {
    return {"the iteration that `forerun predict` sees, in eager PyTorch; --stack megatron has fused kernels"};
  }
  std::vector<std::string> list = {
      fmt::format("the iteration that `forerun predict --compile` sees, in the mode {}, with what that assumes "
                  "(docs/compile.md)",
                  name_of(mode))};
  if (many) {
    list.emplace_back(
        "DDP has torch.compile cut the graph at its buckets, whose gradients travel once the last of them is written; "
        "ZeRO 3 "
        "gathers and reduces block by block. What is lost where graphs are cut is left out");
  }
  return list;
}

std::vector<std::string> scale_assumptions(const ScaleQuestion& question, const ScaledModel& model,
                                           const scale::StepSetup& setup, const ScaleAnswer& answer,
                                           const CostModels& cost_models) {
  std::vector<std::string> list;
  const bool many = std::any_of(answer.steps.begin(), answer.steps.end(),
                                [](const scale::Step& step) { return step.plan.gpus() > 1; });
  if (model.transformer && !question.megatron) {
    list.emplace_back(
        "Megatron-LM trains it, as is usual with tensor groups and stages; --stack pytorch is eager PyTorch");
  }
  if (cost_models.machine != nullptr) {
    const auto& machine = *cost_models.machine;
    const bool host = machine.host_slowness(cost_models.host).has_value();
    list.push_back(model.transformer ? machine.file() +
                                           ": neither its ops nor its host count here, since layers come from "
                                           "formulas fitted to Megatron"
                                     : machine.assumption(setup.cluster.gpu, cost_models, host));
  }
  if (model.transformer) {
    list.push_back(fmt::format("layers at the shares of the peak fitted to Megatron on two A100 ({}), attention {}",
                               setup.efficiency.name, setup.efficiency.fused_attention ? "fused" : "not fused"));
    if (setup.cluster.gpu.compute_capability >= kHopper) {
      list.push_back(
          fmt::format("{:g} times these shares on Hopper GPUs and later, after what Megatron-LM's authors publish",
                      setup.efficiency.hopper));
    }
  } else {
    for (std::string& line : iteration_texts(model, many)) list.push_back(std::move(line));
  }
  list.push_back(precision_text(model, setup.cluster.gpu));
  const bool servers = !answer.steps.empty() && answer.steps.front().plan.exchange != scale::Exchange::all_reduce;
  if (servers) {
    list.emplace_back(
        "parameter servers run on the nodes and share their connections; a node's GPUs add up gradients first");
  }
  const bool nodes = std::any_of(answer.steps.begin(), answer.steps.end(),
                                 [&](const scale::Step& step) { return step.plan.gpus() > answer.node; });
  if (!question.network && nodes) list.push_back(network_text(setup.cluster));
  const bool sharded = std::any_of(answer.steps.begin(), answer.steps.end(),
                                   [](const scale::Step& step) { return step.plan.zero >= 2; });
  if (sharded && model.experts > 1) {
    list.emplace_back(
        "ZeRO 2 and 3 cut tensors whose first dimension is shorter than there are GPUs, as stacked experts are, along "
        "the first that is long enough, as torchtitan does");
  }
  list.push_back(
      fmt::format("NCCL reaches {:.0f} % of the links of a node and {:.0f} % of the network; nothing else uses them",
                  100 * setup.efficiency.links.within.share, 100 * setup.efficiency.links.between.share));
  const bool exchanged = std::any_of(answer.steps.begin(), answer.steps.end(), [](const scale::Step& step) {
    return step.plan.replicas() > 1 && step.plan.overlap;
  });
  if (exchanged) list.push_back(contention_text());
  if (many && slows_in_full_machines(setup.cluster.gpu, model.setup.precision) && !model.transformer)
    list.push_back(full_machine_text(1 / kHopperPace));
  const bool gathers = std::any_of(answer.steps.begin(), answer.steps.end(),
                                   [](const scale::Step& step) { return step.plan.zero == 3; });
  const bool waits = std::any_of(answer.steps.begin(), answer.steps.end(), [&](const scale::Step& step) {
    return step.plan.zero >= 2 && step.plan.gpus() > answer.node;
  });
  if (waits && !model.transformer) list.push_back(waits_text());
  if (gathers && model.transformer) {
    list.push_back(fmt::format("ZeRO 3 is DeepSpeed's, which reached {:.0f} % of the network of Megatron's authors",
                               100 * setup.efficiency.zero3_share));
  } else if (gathers && setup.bytes.gathered < setup.bytes.gradient) {
    list.emplace_back("ZeRO 3 gathers half-precision parameters block by block and adds up float32 gradients, as FSDP");
  }
  list.push_back(fmt::format("{} bytes a parameter: {} weights, {} gradients, {} optimizer",
                             setup.bytes.parameter + setup.bytes.gradient + setup.bytes.state, setup.bytes.parameter,
                             setup.bytes.gradient, setup.bytes.state));
  const std::string replayed = answer.searched ? fmt::format("the first {} plans, where stages are not interleaved,",
                                                             std::max(kSettled, question.shown))
                                               : "plans without interleaved stages";
  list.push_back(model.transformer
                     ? "memory by rules, without fragmentation"
                     : "memory of " + replayed + " by a simulation of PyTorch's allocator, of others by rules");
  list.emplace_back("`scaling` is against GPUs that share the work evenly and never wait");
  if (question.job.any()) list.push_back(risks_text(question.risks));
  if (answer.searched) list.emplace_back("tensor groups stay within a node; gradients travel during the backward pass");
  if (question.oversubscription > 1) {
    list.emplace_back("all that leaves a node crosses the oversubscribed part of the network");
  }
  for (std::string& line : plan_caveats(answer, model, setup)) list.push_back(std::move(line));
  return list;
}

// Of Megatron's formulas, as they were fitted: to A100 and attention that is not fused, where four and eight GPUs were off by 4 % on
// the average. With other GPUs or fused attention an estimate.
constexpr scale::RatioRange kFormulas = {0.92, 1.1}, kFormulasElsewhere = {0.8, 1.3};

scale::RatioRange computation_range(const ScaledModel& model, const Device& gpu, const scale::Efficiency& efficiency,
                                    const CostModels& cost_models) {
  const bool fitted = !efficiency.fused_attention && gpu.name.find("A100") != std::string::npos;
  if (model.transformer) return fitted ? kFormulas : kFormulasElsewhere;
  const GpuDistance distance = distance_to(gpu, cost_models, model.setup.precision);
  RatioInterval range = interval_of(cost_models.intervals, false, distance);
  const CompileMode mode = model.setup.compile;
  if (mode != CompileMode::none) range = compiled_interval(cost_models, mode, false, distance, range);
  return {range.low, range.high};
}

scale::SearchSpace space_of(const ScaleQuestion& question, const ScaledModel& model, int64_t gpus) {
  scale::SearchSpace space;
  space.global_batch = question.global_batch > 0 ? question.global_batch : 4 * gpus;
  const bool layered = model.shares_layers && model.layers > 1;  // equal ones, and blocks of other models
  const bool compiled = model.setup.compile != CompileMode::none;
  space.layers = layered ? model.layers : 0;
  space.most_tensor = model.shares_layers ? question.node : 1;
  space.most_stages = layered ? std::min(model.layers, kMostStages) : std::min(question.node, kFewStages);
  if (compiled) space.most_stages = 1;
  if (!compiled) space.most_context = std::max<int64_t>(model.sequence / kTokensOfContext, 1);
  space.sequence = model.transformer.has_value();
  space.within_nodes = !model.transformer;  // HSDP is PyTorch's
  space.micro_batch = question.micro_batch;
  space.checkpoints = model.layers > 1;
  space.checkpoint = question.setup.checkpointing == Checkpointing::block;
  space.selective = question.setup.checkpointing == Checkpointing::selective;
  space.experts = model.experts;
  space.tables = model.tables;
  return space;
}

Status check_risks(const ScaleQuestion& question) {
  const scale::RunRisks& risks = question.risks;
  if (risks.any() && !question.job.any()) {
    return Error{"failures and slow GPUs lengthen a job, and none is told", "--mttf, --restart, --storage, --spread",
                 "say how long it is: --tokens, --samples, --iterations or --epochs"};
  }
  const auto beyond = [](const std::optional<double>& value, double low, double high) {
    return value && !(*value >= low && *value <= high);
  };
  if (beyond(risks.mttf_hours, 1, 1e12)) {
    return Error{"a GPU's mean time to failure is out of range", "--mttf", "give 1 to 1e12 hours"};
  }
  if (beyond(risks.restart_minutes, 0, 1e5)) {
    return Error{"the time of a restart is out of range", "--restart", "give 0 to 100000 minutes"};
  }
  if (beyond(risks.storage_rate, 1e6, 1e18)) {
    return Error{"the rate of the storage is out of range", "--storage", "give 0.001 to 1e9 GB/s"};
  }
  if (!(risks.spread >= 0 && risks.spread <= 0.5)) {
    return Error{"the spread of GPUs' speeds is out of range", "--spread", "give 0 to 50 per cent"};
  }
  return {};
}

Status check_question(const ScaleQuestion& question) {
  if (question.gpus.empty()) return Error{"no number of GPUs is given", "--gpus", "write --gpus 8 or --gpus 8,16,32"};
  if (question.node < 1 || question.node > 1'000'000) {
    return Error{question.node < 1 ? "a node needs a GPU" : "no node has so many GPUs", "--node",
                 "give 1 to 1,000,000"};
  }
  if (!(question.oversubscription >= 1 && question.oversubscription <= 1000)) {
    return Error{"a network has from as much to a thousandth of what its nodes may send", "--oversubscription",
                 "give 1 to 1000: 2 where leaf switches have half as many links up as down"};
  }
  if (!question.explain.empty() && (!question.search || question.gpus.size() > 1)) {
    return Error{"a plan is explained against the best of a search on one number of GPUs", "--explain",
                 "add --search and give one --gpus, or ask for the plan with --strategy"};
  }
  if (question.search && !question.strategy.empty()) {
    return Error{"a search tries plans of its own", "--strategy, --search",
                 "give one of them, or hold a plan against the best: --search --explain " + question.strategy};
  }
  constexpr int64_t kMostSamples = int64_t{1} << 40;
  if (question.global_batch < 0 || question.global_batch > kMostSamples || question.micro_batch < 0 ||
      question.micro_batch > kMostSamples) {
    return Error{"a batch is negative or too large", "--global-batch, --micro-batch",
                 fmt::format("give 1 to {}", kMostSamples)};
  }
  if (Status status = check_job_length(question.job); !status) return status;
  if (Status status = check_risks(question); !status) return status;
  if (question.setup.accumulate > 1 && (question.global_batch > 0 || question.search)) {
    return Error{"the global batch says how many micro-batches a step has", "--accumulate, --global-batch",
                 "give one of them, and --global-batch with --search"};
  }
  for (const int64_t gpus : question.gpus) {
    if (std::count(question.gpus.begin(), question.gpus.end(), gpus) > 1) {
      return Error{fmt::format("{} GPUs are asked about twice", gpus), "--gpus", "give each number once"};
    }
    if (gpus < 1 || gpus > 1'000'000)
      return Error{fmt::format("{} GPUs make no cluster", gpus), "--gpus", "give 1 to 1,000,000"};
    if (gpus > question.node && gpus % question.node != 0) {
      return Error{fmt::format("{} GPUs are no whole number of nodes of {}", gpus, question.node), "--gpus",
                   "give a multiple of --node, or another --node"};
    }
  }
  return {};
}

// Where the steps of plans come from.
struct StepSource {
  const ScaleQuestion& question;
  const ScaledModel& model;
  const CostModels& cost_models;
  scale::StepSetup setup;
  scale::CostSource costs, whole_costs;

  // Its cluster has so many GPUs from here on.
  void set_gpus(int64_t gpus) { setup.cluster.gpus = gpus; }
  [[nodiscard]] const scale::CostSource& costs_of(const scale::Plan& plan) const {
    return plan.tensor * plan.pipeline == 1 ? whole_costs : costs;
  }
  // Everything that is known of a plan: its exchange gradient by gradient and its memory replayed, where it has one stage.
  [[nodiscard]] Result<scale::Step> step(const scale::Plan& plan) const {
    if (const Status status = check_compiled_plan(model, plan); !status) return status.error();
    if (const Status status = check_offload(model, plan); !status) return status.error();
    auto step = scale::estimate_step(costs_of(plan), setup, plan);
    if (!step) return step.error();
    if (const Status status = refine_passes(question, model, setup, cost_models, *step); !status) return status.error();
    if (const Status status = refine_exchange(question, model, setup, cost_models, *step); !status)
      return status.error();
    if (const Status status = replay_memory(question, model, setup, cost_models, costs_of(plan), *step); !status)
      return status.error();
    return step;
  }
};

// Says of the first plans of a ranking what is said of them when they are asked for, until they are in order.
Status settle_first(const StepSource& source, size_t first, scale::Ranking& ranking) {
  std::vector<scale::Step>& steps = ranking.steps;
  std::vector<scale::Step>& doubtful = ranking.doubtful;
  std::vector<scale::Step> settled;
  while (settled.size() < first && !(steps.empty() && doubtful.empty())) {
    const bool doubted = steps.empty() || (!doubtful.empty() && doubtful.front().ranked() < steps.front().ranked());
    std::vector<scale::Step>& from = doubted ? doubtful : steps;
    auto step = source.step(from.front().plan);
    if (!step) return step.error();
    from.erase(from.begin());
    if (step->fits) {
      settled.push_back(std::move(*step));
    } else {
      leave_out(std::move(*step), ranking);
    }
  }
  for (scale::Step& step : doubtful) leave_out(std::move(step), ranking);
  doubtful.clear();
  scale::sort_ranked(settled);
  steps.insert(steps.begin(), settled.begin(), settled.end());
  return {};
}

Result<scale::Ranking> ranked_plans(const StepSource& source, size_t first, const WorkControl& control) {
  const scale::SearchSpace space = space_of(source.question, source.model, source.setup.cluster.gpus);
  auto found = scale::rank_plans(source.costs, source.setup, space, control, !source.model.transformer);
  if (!found) return found;
  if (found->considered == 0) {
    return Error{
        fmt::format("no plan of {} GPUs makes a step of {} samples{}", source.setup.cluster.gpus, space.global_batch,
                    space.micro_batch > 0 ? fmt::format(" of micro-batches of {}", space.micro_batch) : ""),
        "--global-batch, --micro-batch", "give a multiple of the micro-batch and of a divisor of the GPUs"};
  }
  if (Status status = settle_first(source, first, *found); !status) return status.error();
  return found;
}

Status explain_plan(const StepSource& source, ScaleAnswer& answer) {
  const ScaleQuestion& question = source.question;
  const auto request = scale::parse_plan(question.explain);
  if (!request) return request.error().within("--explain");
  const int64_t gpus = source.setup.cluster.gpus;
  // With the micro-batch of the first plan, as far as the batch can be made of it.
  const int64_t usual = answer.steps.empty() ? source.model.own_batch : answer.steps.front().plan.micro_batch;
  const auto plan = scale::complete(*request, gpus, question.node, space_of(question, source.model, gpus).global_batch,
                                    question.micro_batch, usual);
  if (!plan) return plan.error().within("--explain");
  auto step = source.step(*plan);
  if (!step) return step.error().within("--explain");
  answer.explained = std::move(*step);
  return {};
}

Status search_plans(const StepSource& source, const WorkControl& control, ScaleAnswer& answer) {
  const auto begin = std::chrono::steady_clock::now();
  auto found = ranked_plans(source, std::max(kSettled, source.question.shown), control);
  if (!found) return found.error();
  scale::Ranking& ranking = *found;
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  answer.considered = ranking.considered;
  answer.feasible = static_cast<int64_t>(ranking.steps.size());
  answer.too_large = ranking.too_large;
  answer.impossible = ranking.impossible;
  if (ranking.steps.empty()) answer.nearest = std::move(ranking.nearest);
  answer.steps = std::move(ranking.steps);
  return source.question.explain.empty() ? Status() : explain_plan(source, answer);
}

// The best plan for each number of GPUs.
Status search_each(StepSource& source, const WorkControl& control, ScaleAnswer& answer) {
  for (const int64_t gpus : source.question.gpus) {
    source.set_gpus(gpus);
    const auto found = ranked_plans(source, kSettled, control);
    if (!found) return found.error();
    const scale::Ranking& ranking = *found;
    if (ranking.steps.empty()) {
      std::string line = fmt::format("no plan fits on {} GPUs, of {} considered", gpus, ranking.considered);
      if (ranking.nearest) {
        line += fmt::format("; the nearest, {}, needs {:.1f} GiB", describe(ranking.nearest->plan),
                            gibibytes(ranking.nearest->memory.total()));
      }
      answer.assumptions.push_back(std::move(line));
    } else {
      answer.steps.push_back(ranking.steps.front());
    }
  }
  return {};
}

// Micro-batches and checkpointing that are told as `forerun predict` takes them.
Status take_from_setup(const ScaleQuestion& question, scale::Plan& plan) {
  plan.checkpoint = plan.checkpoint || question.setup.checkpointing == Checkpointing::block;
  plan.selective = plan.selective || question.setup.checkpointing == Checkpointing::selective;
  if (question.setup.accumulate > 1) plan.micro_batches = question.setup.accumulate;
  return scale::check_plan(plan);
}

// The plan of the question on each number of GPUs.
Status ask_plans(StepSource& source, const WorkControl& control, ScaleAnswer& answer) {
  const ScaleQuestion& question = source.question;
  const auto request = scale::parse_plan(plan_text(question));
  if (!request) return request.error();
  Work work(control, "numbers of GPUs", static_cast<int64_t>(question.gpus.size()));
  for (const int64_t gpus : question.gpus) {
    source.set_gpus(gpus);
    auto plan = scale::complete(*request, gpus, question.node, question.global_batch, question.micro_batch,
                                source.model.own_batch);
    if (!plan) return plan.error();
    if (Status status = take_from_setup(question, *plan); !status) return status;
    auto step = source.step(*plan);
    if (!step) return step.error();
    answer.steps.push_back(*step);
    if (Status status = work.advance(); !status) return status;
  }
  return {};
}

ScaleAnswer empty_answer(const ScaleQuestion& question, const ScaledModel& model, const scale::GpuCluster& cluster) {
  ScaleAnswer answer;
  answer.model = model.name;
  answer.parameters = model.parameters;
  answer.gpu = cluster.gpu.name;
  answer.node = cluster.node;
  answer.within = fmt::format("{} {:.0f} GB/s a direction", cluster.within.name, cluster.within.bandwidth / 1e9);
  answer.between = fmt::format("{} {:g} GB/s a node", cluster.between.name, cluster.between.bandwidth / 1e9);
  if (question.oversubscription > 1) {
    answer.between += fmt::format(", oversubscribed {:g} to 1", question.oversubscription);
  }
  answer.device_memory = cluster.gpu.memory;
  answer.stack = model.transformer ? "megatron" : "pytorch";
  answer.precision = precision_name(model);
  answer.compile = model.setup.compile;
  answer.searched = question.search && question.gpus.size() == 1;
  answer.job = question.job;
  answer.risks = question.risks;
  answer.power_w = cluster.gpu.power_w;
  answer.price = question.prices.of(cluster.gpu.name);  // checked before
  return answer;
}

}  // namespace

const scale::Step* shown_step(const ScaleAnswer& answer) {
  if (answer.steps.empty()) return nullptr;
  return answer.searched ? &answer.steps.front() : &answer.steps.back();
}

JobTime job_time(const JobLength& length, const scale::Step& step) {
  const double tokens = step.samples_per_second > 0 ? step.tokens_per_second / step.samples_per_second : 0;
  const Result<int64_t> iterations =
      length.in_iterations({.samples = step.samples, .tokens_each = std::llround(tokens)});
  CHECK(iterations.ok(), "scale_out refuses tokens of models that read none");
  JobTime job = job_time(*iterations, step.parts);
  job.gpus = step.plan.gpus();
  return job;
}

JobTime job_time(const ScaleAnswer& answer, const scale::Step& step) {
  JobTime job = job_time(answer.job, step);
  job.price = answer.price;
  const auto whole = static_cast<double>(std::max<int64_t>(step.time.value, 1));
  set_energy({.power_w = answer.power_w, .busy = static_cast<double>((step.compute + step.update).value) / whole}, job);
  return job;
}

scale::WholeRun whole_run(const ScaleAnswer& answer, const scale::Step& step) {
  const int64_t gpus = step.plan.gpus();
  const auto whole = static_cast<double>(std::max<int64_t>(step.time.value, 1));
  return scale::whole_run({.hours = job_time(answer.job, step).hours,
                           .gpus = gpus,
                           .nodes = (gpus + answer.node - 1) / answer.node,
                           .state = answer.state,
                           .busy = static_cast<double>((step.compute + step.update).value) / whole},
                          answer.risks);
}

Result<ScaleAnswer> scale_out(const ScaleQuestion& question, const CostModels& cost_models,
                              const WorkControl& control) {
  if (const Status status = check_question(question); !status) return status.error();
  const auto cluster = scale_cluster(question, cost_models);
  if (!cluster) return cluster.error();
  if (const auto price = price_of_run(question.prices, cluster->gpu, question.job); !price) return price.error();
  const auto efficiency = chosen_efficiency(question);
  if (!efficiency) return efficiency.error();
  const auto model = scaled_model(question, cluster->gpu);
  if (!model) return model.error();
  StepSource source{.question = question,
                    .model = *model,
                    .cost_models = cost_models,
                    .setup = {.cluster = *cluster,
                              .efficiency = *efficiency,
                              .bytes = state_bytes(*model),
                              .unit = scale_unit(model->setup.precision, cluster->gpu),
                              .computation = computation_range(*model, cluster->gpu, *efficiency, cost_models),
                              .megatron = model->transformer.has_value(),
                              .compiled = model->setup.compile != CompileMode::none,
                              .width = model->transformer ? model->transformer->hidden : 0,
                              .fp8 = model->setup.precision == Precision::amp_fp8},
                    .costs = {},
                    .whole_costs = {}};
  source.set_gpus(question.gpus.front());
  source.costs = cost_source(question, *model, source.setup, cost_models, false);
  source.whole_costs = cost_source(question, *model, source.setup, cost_models, true);
  ScaleAnswer answer = empty_answer(question, *model, source.setup.cluster);
  answer.state = Bytes(model->parameters * (source.setup.bytes.parameter + source.setup.bytes.state));
  if (answer.searched) {
    if (Status status = search_plans(source, control, answer); !status) return status.error();
  } else if (question.search) {
    if (Status status = search_each(source, control, answer); !status) return status.error();
  } else {
    if (Status status = ask_plans(source, control, answer); !status) return status.error();
  }
  const bool reads_tokens = answer.steps.empty() || answer.steps.front().tokens_per_second > 0;
  if (question.job.tokens > 0 && !reads_tokens) return question.job.in_iterations({}).error();
  if (const scale::Step* shown = shown_step(answer); question.picture && shown != nullptr) {
    source.set_gpus(shown->plan.gpus());
    auto picture = scale::picture_of(source.costs_of(shown->plan), source.setup, *shown);
    if (!picture) return picture.error();
    answer.picture = std::move(*picture);
  }
  for (std::string& line : scale_assumptions(question, *model, source.setup, answer, cost_models))
    answer.assumptions.push_back(std::move(line));
  return answer;
}

}  // namespace forerun
