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
  const HostCosts host =
      host_costs(run.graph, costs, cost_models.host, host_speed(cost_models.host, run.environment.calibration));
  const IterationTiming times = host_gpu_timeline(lane_ops(run.graph, costs, host),
                                                  {.gap = device.launch_gap, .per_iteration = host.per_iteration});
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
  load.tensors = static_cast<double>(run.graph.parameters().size());
  load.optimizer = server_optimizer(run.setup.optimizer);
  const double computing = std::max(1.0, static_cast<double>((times.phases[0] + times.phases[1]).value));
  load.update = times.phases[2];
  load.gpu_percent = std::clamp(100 * busy / computing, 1.0, 100.0);
  return load;
}

Result<ResourceAnswer> simulate_training(const ResourceQuestion& question, const CostModels& cost_models) {
  auto setting = scale::resource_setting(question.setting);
  if (!setting) return setting.error().within("--testbed");
  if (question.async && setting->servers == 0) {
    return Error{"all-reduce has no asynchronous form", "--mode", "name a setting with servers, such as P1w2-10G"};
  }
  const auto gpu = cost_models.devices.find(question.gpu);
  if (!gpu) return gpu.error();
  ModelRequest request{.model = question.model,
                       .batch = {},
                       .settings = question.settings,
                       .setup = question.setup,
                       .default_optimizer = question.default_optimizer};
  if (question.batch > 0) request.batch = question.batch;
  const auto run = build_run(request, *gpu);
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
  return answer;
}

}  // namespace forerun
