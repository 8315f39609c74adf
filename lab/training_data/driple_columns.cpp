#include "lab/training_data/driple_columns.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "api/scale_resources.h"
#include "derive/work.h"
#include "predict/predict.h"
#include "timeline/host_gpu_timeline.h"

namespace forerun {
namespace {

double safe_log(double value) { return std::log(std::max(value, 1e-6)); }

double mode_number(const std::string& mode) { return mode == "sync" ? 0 : mode == "async" ? 1 : 2; }

// How many values beside a parameter the optimizer reads or writes, roughly; what a server's update depends on.
double optimizer_weight(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::adam: return 3;
    case OptimizerKind::adamw: return 4;
    case OptimizerKind::rmsprop: return 2;
    default: return spec.momentum > 0 ? 1 : 0;
  }
}

}  // namespace

IterationFigures figures_of(const TrainingRun& run, const Device& device, const CostModels& cost_models) {
  IterationFigures f;
  const std::vector<OpCost> costs = gpu_costs(run, device, cost_models);
  const HostCosts host =
      host_costs(run.graph, costs, cost_models.host, host_speed(cost_models.host, run.environment.calibration));
  const IterationTiming times = host_gpu_timeline(lane_ops(run.graph, costs, host),
                                                  {.gap = device.launch_gap, .per_iteration = host.per_iteration});
  f.forward_ms = milliseconds(times.phases[0]);
  f.backward_ms = milliseconds(times.phases[1]);
  double products = 0;
  std::array<double, 4> bounds = {};
  for (size_t i = 0; i < run.graph.op_count(); ++i) {
    const Op& op = run.graph.ops()[i];
    if (op.phase == Phase::update) continue;
    const OpWork work = work_of(run.graph, op);
    const double gpu = milliseconds(costs[i].gpu - costs[i].overlapped);
    f.host_ms += milliseconds(host.ops[i]);
    f.ops += 1;
    if (!work.on_gpu) continue;
    f.gpu_ms += gpu;
    f.flops += work.flops.value;
    f.moved += static_cast<double>(work.read.value + work.written.value);
    f.kernels += costs[i].kernels;
    if (work.gemm_count > 0) products += gpu;
    bounds[static_cast<size_t>(costs[i].bound)] += gpu;
  }
  const double all = std::max(f.gpu_ms, 1e-6);
  f.product_share = products / all;
  f.memory_share = bounds[static_cast<size_t>(Bound::memory)] / all;
  f.tiny_share = bounds[static_cast<size_t>(Bound::latency)] / all;
  f.mean_kernel_us = 1e3 * f.gpu_ms / std::max(f.kernels, 1.0);
  f.parameter_bytes = 4 * static_cast<double>(run.graph.parameter_count());
  f.tensors = static_cast<double>(run.graph.parameters().size());
  for (const TensorId id : run.graph.parameters()) {
    f.largest = std::max(f.largest, 4 * static_cast<double>(run.graph.element_count(id)));
  }
  f.largest /= std::max(f.parameter_bytes, 1.0);
  return f;
}

// First guesses of the twelve numbers, for trees to correct; the constants are rough, and of no matter to them.
// A worker computes, then its gradients (or its share of a ring) go out and parameters come back over links that the
// workers of a server share.
learn::ResourceMetrics formulas_of(const ResourceRecord& record, const IterationFigures& f) {
  const auto workers = static_cast<double>(record.workers);
  const double link_ms = 8e3 * f.parameter_bytes / record.bits_per_second;
  const double computing = 1.25 * (f.forward_ms + f.backward_ms) + 1;
  const bool ring = record.servers == 0;
  const double burst = 1 + link_ms * (ring ? 2 * (workers - 1) / workers : (record.mode == "sync" ? 1 : 0.7) * workers);
  const double exchange = 2 + (ring ? 1.0 : 2.1) * burst;
  const double idle = computing + (ring ? 0 : 1.1 * burst);
  const double busy = std::min(100.0, 100 * workers * (f.gpu_ms + 0.003 * f.kernels) / computing);
  const double memory = std::min(100.0, 1.4 * f.moved * 1e-6 / computing / 48);
  const double rate = 0.56e-6 * record.bits_per_second / 8;
  return {exchange, computing, busy, exchange, computing, memory, idle, burst, rate, idle, burst, rate};
}

std::vector<NamedValue> columns_of(const ResourceRecord& record, const IterationFigures& f) {
  const TrainingRun& run = record.described.run;
  const double link_ms = 8e3 * f.parameter_bytes / record.bits_per_second;
  const double computing = f.forward_ms + f.backward_ms;
  return {{"mode", mode_number(record.mode)},
          {"tcp", record.tcp == "default" ? 1.0 : 0.0},
          {"workers", static_cast<double>(record.workers)},
          {"link", safe_log(record.bits_per_second * 1e-9)},
          {"transfer", safe_log(link_ms)},
          {"tensors", safe_log(f.tensors)},
          {"largest", f.largest},
          {"forward", safe_log(f.forward_ms)},
          {"backward", safe_log(f.backward_ms)},
          {"computing", safe_log(computing)},
          {"gpu", safe_log(f.gpu_ms)},
          {"host", safe_log(f.host_ms)},
          {"busy", f.gpu_ms / std::max(computing, 1e-6)},
          {"moved", safe_log(f.moved * 1e-6)},
          {"bandwidth", safe_log(f.moved * 1e-6 / std::max(computing, 1e-6))},
          {"flops", safe_log(f.flops * 1e-9)},
          {"rate", safe_log(f.flops * 1e-9 / std::max(f.gpu_ms, 1e-6))},
          {"kernels", safe_log(f.kernels)},
          {"kernel", safe_log(f.mean_kernel_us)},
          {"products", f.product_share},
          {"memory_bound", f.memory_share},
          {"latency_bound", f.tiny_share},
          {"batch", safe_log(static_cast<double>(run.input.batch))},
          {"optimizer", optimizer_weight(run.setup.optimizer)},
          {"kernel_rate", safe_log(f.kernels / std::max(computing, 1e-6))},
          {"gpu_to_host", safe_log(f.gpu_ms / std::max(f.host_ms, 1e-6))},
          {"host_a_kernel", safe_log(f.host_ms / std::max(f.kernels, 1.0))},
          {"ratio", safe_log(link_ms / std::max(computing, 1e-6))}};
}

std::vector<NamedValue> globals_of(const ResourceRecord& record, const IterationFigures& f, double even_links) {
  const TrainingRun& run = record.described.run;
  const double optimizer = optimizer_weight(run.setup.optimizer);
  return {{"batch", std::log2(static_cast<double>(run.input.batch)) / 4 - 1},
          {"sync", record.mode == "sync" ? 1.0 : 0.0},
          {"parameters", (safe_log(f.parameter_bytes * 1e-6) - 3) / 2},
          {"tensors", (safe_log(f.tensors) - 4) / 2},
          {"flops", (safe_log(f.flops * 1e-9) - 5) / 2},
          {"moved", (safe_log(f.moved * 1e-6) - 8) / 2},
          {"ops", (safe_log(f.ops) - 6) / 2},
          {"momentum", optimizer == 1 ? 1.0 : 0.0},
          {"rmsprop", optimizer == 2 ? 1.0 : 0.0},
          {"adam", optimizer >= 3 ? 1.0 : 0.0},
          {"workers", std::log2(static_cast<double>(record.workers)) - 1},
          {"link", safe_log(record.bits_per_second * 1e-10) / 2},
          {"ring", record.servers == 0 ? 1.0 : 0.0},
          {"even", even_links},
          {"servers", std::log2(1 + static_cast<double>(record.servers)) - 1}};
}

}  // namespace forerun
