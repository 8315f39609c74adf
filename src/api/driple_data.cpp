#include "api/driple_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "api/data_files.h"
#include "api/predict.h"
#include "api/scale_resources.h"
#include "base/data_dir.h"
#include "derive/work.h"
#include "ingest/resources/resource_record.h"
#include "learn/record_example.h"
#include "timeline/two_lane.h"

namespace forerun {
namespace {

constexpr const char* kTestbedGpu = "h200";

double safe_log(double value) { return std::log(std::max(value, 1e-6)); }

// What one worker's iteration is, from the graph and from what its ops are predicted to take.
struct IterationFigures {
  double parameter_bytes = 0, tensors = 0, largest = 0;  // largest: share of the parameters in one tensor
  double flops = 0, moved = 0;                           // of forward and backward pass
  double kernels = 0, ops = 0;
  double gpu_ms = 0, host_ms = 0, forward_ms = 0, backward_ms = 0;
  double product_share = 0, memory_share = 0, tiny_share = 0;  // of GPU time: products; memory-bound; latency-bound ops
  double mean_kernel_us = 0;
};

IterationFigures figures_of(const TrainingRun& run, const Device& device, const Knowledge& knowledge) {
  IterationFigures f;
  const std::vector<OpCost> costs = gpu_costs(run, device, knowledge);
  const HostCosts host =
      host_costs(run.graph, costs, knowledge.host, host_speed(knowledge.host, run.environment.calibration));
  const LaneTimes times =
      two_lane(lane_ops(run.graph, costs, host), {.gap = device.launch_gap, .per_iteration = host.per_iteration});
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

struct NamedValue {
  const char* name;
  double value;
};

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

std::vector<NamedValue> globals_of(const ResourceRecord& record, const IterationFigures& f) {
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
          {"adam", optimizer >= 3 ? 1.0 : 0.0}};
}

learn::ResourceMetrics flat_metrics(const std::array<BurstFigures, 4>& metrics) {
  learn::ResourceMetrics flat{};
  for (size_t i = 0; i < 4; ++i) {
    flat[3 * i] = metrics[i].idle_ms;
    flat[3 * i + 1] = metrics[i].burst_ms;
    flat[3 * i + 2] = metrics[i].amount;
  }
  return flat;
}

learn::ResourceMetrics flat_metrics(const scale::ResourceUse& use) {
  learn::ResourceMetrics flat{};
  for (size_t i = 0; i < 4; ++i) {
    flat[3 * i] = use.metrics[i].idle_ms;
    flat[3 * i + 1] = use.metrics[i].burst_ms;
    flat[3 * i + 2] = use.metrics[i].amount;
  }
  return flat;
}

class DripleDataBuilder {
 public:
  DripleDataBuilder(const Knowledge& knowledge, const Device& device, const scale::HostRates& rates,
                    std::map<std::string, std::string> splits)
      : knowledge_(knowledge), device_(device), rates_(rates), splits_(std::move(splits)) {}

  Status add(const ResourceRecord& record) {
    auto run = recorded_run(record.described, device_);
    if (!run) return run.error();
    const IterationFigures figures = figures_of(*run, device_, knowledge_);
    learn::ResourceWorkload workload;
    workload.id = record.id;
    workload.family = run->family;
    workload.setting = record.setting + (record.tcp == "default" ? "-default" : "");
    workload.mode = record.mode;
    const auto split = splits_.find(run->family);
    workload.split = split != splits_.end() && split->second == "train" ? learn::Split::train : learn::Split::test;
    workload.measured = flat_metrics(record.measured.metrics);
    workload.formulas = formulas_of(record, figures);
    for (const NamedValue& global : globals_of(record, figures)) {
      workload.globals.push_back(static_cast<float>(global.value));
    }
    data_.column_names.clear();
    for (const NamedValue& column : columns_of(record, figures)) {
      workload.columns.push_back(static_cast<float>(column.value));
      data_.column_names.emplace_back(column.name);
    }
    learn::Example example = learn::example_of(*run, data_.iterations);
    example.split = workload.split;
    workload.example = static_cast<uint32_t>(data_.iterations.examples().size());
    data_.iterations.add(std::move(example));
    const scale::ResourceSetting setting{.servers = record.servers,
                                         .workers = record.workers,
                                         .bits_per_second = record.bits_per_second,
                                         .sync = record.mode != "async"};
    workload.simulated =
        flat_metrics(scale::simulate_resources(worker_load(*run, device_, knowledge_), setting, rates_));
    data_.workloads.push_back(std::move(workload));
    return {};
  }

  learn::ResourceData finish() && { return std::move(data_); }

 private:
  const Knowledge& knowledge_;
  const Device& device_;
  const scale::HostRates& rates_;
  std::map<std::string, std::string> splits_;
  learn::ResourceData data_;
};

}  // namespace

Result<learn::ResourceData> load_driple_data(const DripleDataOptions& options, const Knowledge& knowledge) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  std::vector<std::string> paths = options.records;
  if (paths.empty()) paths.push_back((*folder / kResourceRecords).string());
  const auto files = record_files(paths);
  if (!files) return files.error();
  const auto device = knowledge.devices.find(kTestbedGpu);
  if (!device) return device.error();
  auto splits = family_splits({(*folder / "h200" / "split.json").string()});
  if (!splits) return splits.error();
  const auto rates = testbed_rates();
  if (!rates) return rates.error();
  DripleDataBuilder builder(knowledge, *device, *rates, std::move(*splits));
  ResourceReader reader;
  const auto tell = [&](const Error& error) {
    if (options.problem) options.problem(error);
  };
  const auto use = [&](ResourceRecord&& record) {
    if (const Status status = builder.add(record); !status.ok()) tell(status.error().within(record.id));
  };
  for (const std::string& file : *files) {
    if (const Status status = reader.read(file, use, tell); !status.ok()) return status.error();
  }
  learn::ResourceData data = std::move(builder).finish();
  if (data.workloads.empty()) {
    return Error{"there is no resources/1 record to learn from", paths[0], "name files of forerun.testbed with --data"};
  }
  data.source = std::to_string(data.workloads.size()) + " workloads measured by forerun.testbed";
  return data;
}

}  // namespace forerun
