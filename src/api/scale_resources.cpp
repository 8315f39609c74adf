#include "api/scale_resources.h"

#include <algorithm>
#include <filesystem>

#include "base/data_dir.h"
#include "derive/work.h"
#include "predict/predict.h"
#include "scale/graph_cost.h"
#include "testbed/memory_traffic.h"
#include "timeline/host_gpu_timeline.h"

namespace forerun {
namespace {

scale::ServerOptimizer server_optimizer(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::adam: return scale::ServerOptimizer::adam;
    case OptimizerKind::adamw: return scale::ServerOptimizer::adamw;
    case OptimizerKind::rmsprop: return scale::ServerOptimizer::rmsprop;
    default: return spec.momentum > 0 ? scale::ServerOptimizer::momentum : scale::ServerOptimizer::sgd;
  }
}

constexpr size_t kLoadSlices = 200;

// Forward and backward pass in equal parts, from when each op's kernels run and what they move.
std::vector<scale::LoadSlice> load_slices(const Graph& graph, std::span<const LaneOp> lanes, const LaneSetup& setup,
                                          const Device& device) {
  const std::vector<KernelSpan> spans = kernel_spans(lanes, setup);
  const std::vector<scale::Traffic> traffic = scale::op_traffic(graph, device.l2);
  int64_t end = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (graph.ops()[i].phase != Phase::update) end = std::max(end, spans[i].end.value);
  }
  if (end == 0) return {};
  std::vector<scale::LoadSlice> slices(kLoadSlices);
  const double length = static_cast<double>(end) / static_cast<double>(kLoadSlices);
  for (size_t i = 0; i < spans.size(); ++i) {
    const auto begin = static_cast<double>(spans[i].begin.value);
    const double lasts = static_cast<double>(spans[i].end.value) - begin;
    if (graph.ops()[i].phase == Phase::update || !(lasts > 0)) continue;
    const auto first = static_cast<size_t>(begin / length);
    for (size_t s = first; s < kLoadSlices && static_cast<double>(s) * length < begin + lasts; ++s) {
      const double from = std::max(begin, static_cast<double>(s) * length);
      const double share = (std::min(begin + lasts, static_cast<double>(s + 1) * length) - from) / lasts;
      slices[s].busy += share * static_cast<double>(spans[i].busy.value) / length;
      for (size_t k = 0; k < traffic[i].size(); ++k) {
        slices[s].traffic[k] += share * traffic[i][k] / device.memory_bandwidth;
      }
    }
  }
  return slices;
}

}  // namespace

Result<scale::HostRates> testbed_rates() {
  const auto data = data_dir();
  if (!data) return data.error();
  const std::filesystem::path file = *data / kHostRatesFile;
  if (!std::filesystem::exists(file)) return scale::HostRates();
  return scale::read_host_rates(file);
}

scale::LinkState simulated_links(const ResourceRecord& record) {
  if (record.tcp == "default" || record.links == LinksSeen::even) return scale::LinkState::even;
  return record.links == LinksSeen::last ? scale::LinkState::last : scale::LinkState::first;
}

scale::WorkerLoad worker_load(const TrainingRun& run, const Device& device, const CostModels& cost_models) {
  const std::vector<OpCost> costs = gpu_costs(run, device, cost_models);
  const HostCosts host = host_costs(run.graph, costs, cost_models.host, host_speed(cost_models, run));
  const std::vector<LaneOp> lanes = lane_ops(run.graph, costs, host);
  const LaneSetup lane_setup{.gap = device.launch_gap, .per_iteration = host.per_iteration};
  const IterationTiming times = host_gpu_timeline(lanes, lane_setup);
  const scale::ModelCosts blocks = scale::graph_costs(run, costs, host, times, {});
  scale::WorkerLoad load;
  for (const scale::Block& block : blocks.blocks) {
    load.layers.push_back({block.forward, block.backward, Bytes(4 * block.parameters)});
  }
  double busy = 0;  // nanoseconds
  for (size_t i = 0; i < run.graph.op_count(); ++i) {
    const Op& op = run.graph.ops()[i];
    if (op.phase == Phase::update) {
      load.update_traffic += static_cast<double>(work_of(run.graph, op).bytes().value) / device.memory_bandwidth;
      continue;
    }
    busy += static_cast<double>(costs[i].gpu.value - costs[i].overlapped.value);
  }
  load.traffic = scale::memory_traffic(run.graph, device.l2);
  for (double& moved : load.traffic) moved /= device.memory_bandwidth;
  load.slices = load_slices(run.graph, lanes, lane_setup, device);
  load.tensors = static_cast<double>(run.graph.parameters().size());
  load.optimizer = server_optimizer(run.setup.optimizer);
  const double computing = std::max(1.0, static_cast<double>((times.phases[0] + times.phases[1]).value));
  load.update = times.phases[2];
  load.gpu_percent = std::clamp(100 * busy / computing, 1.0, 100.0);
  return load;
}

Result<TrainingRun> worker_run(const ResourceQuestion& question, const Device& gpu) {
  ModelRequest request{.model = question.model,
                       .batch = {},
                       .settings = question.settings,
                       .setup = question.setup,
                       .default_optimizer = question.default_optimizer};
  if (question.batch > 0) request.batch = question.batch;
  return build_run(request, gpu);
}

Result<ResourceAnswer> simulate_training(const ResourceQuestion& question, const CostModels& cost_models) {
  auto setting = scale::resource_setting(question.setting);
  if (!setting) return setting.error().within("--testbed");
  if (question.async && setting->servers == 0) {
    return Error{"all-reduce has no asynchronous form", "--mode", "name a setting with servers, such as P1w2-10G"};
  }
  const auto gpu = asked_gpu(question.gpu, cost_models);
  if (!gpu) return gpu.error();
  const auto run = worker_run(question, *gpu);
  if (!run) return run.error();
  const auto rates = testbed_rates();
  if (!rates) return rates.error();
  setting->sync = !question.async;
  setting->shared_gpu = !question.own_gpus;
  setting->overlap = question.overlap;
  ResourceAnswer answer;
  answer.model = question.model;
  answer.gpu = gpu->name;
  answer.setting = question.setting;
  answer.mode = setting->servers == 0 ? "allreduce" : question.async ? "async" : "sync";
  answer.batch = run->input.batch;
  answer.parameters = run->graph.parameter_count();
  answer.shared_gpu = setting->shared_gpu;
  answer.use = scale::simulate_resources(worker_load(*run, *gpu, cost_models), *setting, *rates);
  answer.calibration = calibration_told(cost_models, *gpu, *run);
  return answer;
}

}  // namespace forerun
