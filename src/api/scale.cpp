#include "api/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "api/scaled_model.h"
#include "base/check.h"
#include "base/data_dir.h"
#include "cost/collective/link_name.h"
#include "predict/machine_calibration.h"
#include "scale/plan.h"
#include "scale/search.h"
#include "timeline/contention.h"

namespace forerun {
namespace {

constexpr int64_t kUsualBatch = 32;  // samples a GPU of models other than transformers, where none is given
constexpr int64_t kMostStages = 128;

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
  auto between = network_by_name(question.network, cost_models.devices);
  if (!between) return between.error().within("--network");
  cluster.between = *between;
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

std::vector<std::string> scale_assumptions(const ScaledModel& model, const scale::StepSetup& setup,
                                           const ScaleAnswer& answer, const CostModels& cost_models) {
  std::vector<std::string> list;
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
  } else {
    list.emplace_back("blocks of the iteration that `forerun predict` sees on one GPU; layers are not shared");
  }
  list.push_back(precision_text(model, setup.cluster.gpu));
  const bool servers = !answer.steps.empty() && answer.steps.front().plan.exchange != scale::Exchange::all_reduce;
  if (servers) {
    list.emplace_back(
        "parameter servers run on the nodes and share their connections; a node's GPUs add up gradients first");
  }
  list.push_back(
      fmt::format("NCCL reaches {:.0f} % of the links of a node and {:.0f} % of the network; nothing else uses them",
                  100 * setup.efficiency.links.within.share, 100 * setup.efficiency.links.between.share));
  const bool exchanged = std::any_of(answer.steps.begin(), answer.steps.end(),
                                     [](const scale::Step& step) { return step.plan.data > 1 && step.plan.overlap; });
  if (exchanged) list.push_back(contention_text());
  list.push_back(fmt::format("{} bytes a parameter: {} weights, {} gradients, {} optimizer",
                             setup.bytes.parameter + setup.bytes.gradient + setup.bytes.state, setup.bytes.parameter,
                             setup.bytes.gradient, setup.bytes.state));
  list.emplace_back(!model.transformer && !answer.searched
                        ? "memory of a replica by a simulation of PyTorch's allocator, of several stages by rules"
                        : "memory by rules, without fragmentation");
  list.emplace_back("`scaling` is against GPUs that share the work evenly and never wait");
  if (answer.searched) list.emplace_back("tensor groups stay within a node; gradients travel during the backward pass");
  return list;
}

scale::SearchSpace space_of(const ScaleQuestion& question, const ScaledModel& model, int64_t gpus) {
  scale::SearchSpace space;
  space.global_batch = question.global_batch > 0 ? question.global_batch : 4 * gpus;
  if (model.transformer) {
    space.layers = model.transformer->layers;
    space.most_tensor = question.node;
    space.most_stages = std::min(model.transformer->layers, kMostStages);
  } else {
    space.most_stages = std::min<int64_t>(question.node, 8);
    space.most_micro_batch = 256;
  }
  return space;
}

Status check_question(const ScaleQuestion& question) {
  if (question.gpus.empty()) return Error{"no number of GPUs is given", "--gpus", "write --gpus 8 or --gpus 8,16,32"};
  if (question.node < 1 || question.node > 1'000'000) {
    return Error{question.node < 1 ? "a node needs a GPU" : "no node has so many GPUs", "--node",
                 "give 1 to 1,000,000"};
  }
  constexpr int64_t kMostSamples = int64_t{1} << 40;
  if (question.global_batch < 0 || question.global_batch > kMostSamples || question.micro_batch < 0 ||
      question.micro_batch > kMostSamples) {
    return Error{"a batch is negative or too large", "--global-batch, --micro-batch",
                 fmt::format("give 1 to {}", kMostSamples)};
  }
  if (Status status = check_job_length(question.job); !status) return status;
  for (const int64_t gpus : question.gpus) {
    if (gpus < 1 || gpus > 1'000'000)
      return Error{fmt::format("{} GPUs make no cluster", gpus), "--gpus", "give 1 to 1,000,000"};
    if (gpus > question.node && gpus % question.node != 0) {
      return Error{fmt::format("{} GPUs are no whole number of nodes of {}", gpus, question.node), "--gpus",
                   "give a multiple of --node, or another --node"};
    }
  }
  return {};
}

Status search_plans(const ScaleQuestion& question, const ScaledModel& model, const scale::StepSetup& setup,
                    const scale::CostSource& costs, const WorkControl& control, ScaleAnswer& answer) {
  const auto begin = std::chrono::steady_clock::now();
  auto found = scale::rank_plans(costs, setup, space_of(question, model, setup.cluster.gpus), control);
  if (!found) return found.error();
  scale::Ranking& ranking = *found;
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  answer.considered = ranking.considered;
  answer.feasible = static_cast<int64_t>(ranking.steps.size());
  answer.too_large = ranking.too_large;
  answer.steps = std::move(ranking.steps);
  return {};
}

// The best plan for each number of GPUs.
Status search_each(const ScaleQuestion& question, const ScaledModel& model, scale::StepSetup& setup,
                   const scale::CostSource& costs, const WorkControl& control, ScaleAnswer& answer) {
  for (const int64_t gpus : question.gpus) {
    setup.cluster.gpus = gpus;
    auto found = scale::rank_plans(costs, setup, space_of(question, model, gpus), control);
    if (!found) return found.error();
    scale::Ranking& ranking = *found;
    if (ranking.steps.empty()) {
      answer.assumptions.push_back(fmt::format("no plan fits on {} GPUs, of {} considered", gpus, ranking.considered));
    } else {
      answer.steps.push_back(ranking.steps.front());
    }
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
  answer.device_memory = cluster.gpu.memory;
  answer.precision = name_of(model.setup.precision);
  answer.searched = question.search && question.gpus.size() == 1;
  answer.job = question.job;
  answer.power_w = cluster.gpu.power_w;
  answer.price = question.prices.of(cluster.gpu.name);  // checked before
  return answer;
}

}  // namespace

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
  scale::StepSetup setup{.cluster = *cluster,
                         .efficiency = *efficiency,
                         .bytes = state_bytes(*model),
                         .unit = scale_unit(model->setup.precision, cluster->gpu)};
  setup.cluster.gpus = question.gpus.front();
  const scale::CostSource costs = cost_source(question, *model, setup, cost_models);
  ScaleAnswer answer = empty_answer(question, *model, setup.cluster);
  if (answer.searched) {
    if (Status status = search_plans(question, *model, setup, costs, control, answer); !status) return status.error();
  } else if (question.search) {
    if (Status status = search_each(question, *model, setup, costs, control, answer); !status) return status.error();
  } else {
    const auto request = scale::parse_plan(question.strategy);
    if (!request) return request.error();
    const bool open = question.micro_batch == 0 && question.global_batch == 0 && !model->transformer;
    const int64_t micro_batch = open ? model->own_batch.value_or(kUsualBatch) : question.micro_batch;
    Work work(control, "numbers of GPUs", static_cast<int64_t>(question.gpus.size()));
    for (const int64_t gpus : question.gpus) {
      setup.cluster.gpus = gpus;
      const auto plan = scale::complete(*request, gpus, question.node, question.global_batch, micro_batch);
      if (!plan) return plan.error();
      auto step = scale::estimate_step(costs, setup, *plan);
      if (!step) return step.error();
      if (const Status status = refine_exchange(question, *model, setup, cost_models, *step); !status) {
        return status.error();
      }
      if (const Status status = replay_memory(question, *model, setup, cost_models, *step); !status)
        return status.error();
      answer.steps.push_back(*step);
      if (const Status status = work.advance(); !status) return status.error();
    }
  }
  const bool reads_tokens = answer.steps.empty() || answer.steps.front().tokens_per_second > 0;
  if (question.job.tokens > 0 && !reads_tokens) return question.job.in_iterations({}).error();
  for (std::string& line : scale_assumptions(*model, setup, answer, cost_models))
    answer.assumptions.push_back(std::move(line));
  return answer;
}

}  // namespace forerun
