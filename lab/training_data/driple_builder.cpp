#include "lab/training_data/driple_builder.h"

#include <fmt/format.h>

#include "api/scale_resources.h"
#include "lab/dataset/record_example.h"
#include "predict/predict.h"

namespace forerun {
namespace {

// Of four resources with idle_ms, burst_ms and amount each.
template <class Figures>
learn::ResourceMetrics flat_metrics(const std::array<Figures, 4>& metrics) {
  learn::ResourceMetrics flat{};
  for (size_t i = 0; i < 4; ++i) {
    flat[3 * i] = metrics[i].idle_ms;
    flat[3 * i + 1] = metrics[i].burst_ms;
    flat[3 * i + 2] = metrics[i].amount;
  }
  return flat;
}

std::string iteration_key(const TrainingRun& run) {
  const InputSpec& input = run.input;
  const TrainingSetup& setup = run.setup;
  const OptimizerSpec& optimizer = setup.optimizer;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", run.family, run.arguments, name_of(input.kind),
                     input.batch, input.channels, input.size, input.classes, input.flavour, name_of(setup.precision),
                     name_of(optimizer.kind), name_of(optimizer.impl), optimizer.momentum, optimizer.weight_decay,
                     setup.channels_last, setup.accumulate);
}

}  // namespace

bool DripleWorkloadBuilder::trains_on(const std::string& family) const { return split_.trains_on_family(family); }

Result<const DripleWorkloadBuilder::Iteration*> DripleWorkloadBuilder::iteration_of(const ResourceRecord& record) {
  const std::string key = iteration_key(record.described.run);
  if (const auto known = iterations_.find(key); known != iterations_.end()) return &known->second;
  auto run = recorded_run(record.described, device_);
  if (!run) return run.error();
  Iteration iteration{.example = static_cast<uint32_t>(data_.iterations.examples().size()),
                      .figures = figures_of(*run, device_, cost_models_),
                      .load = worker_load(*run, device_, cost_models_)};
  learn::Example example = learn::example_of(*run, data_.iterations);
  example.split = trains_on(run->family) ? learn::Split::train : learn::Split::test;
  data_.iterations.add(std::move(example));
  return &iterations_.emplace(key, std::move(iteration)).first->second;
}

Result<learn::ResourceWorkload> DripleWorkloadBuilder::workload_of(const ResourceRecord& record) {
  const auto built = iteration_of(record);
  if (!built) return built.error();
  const Iteration& iteration = **built;
  learn::ResourceWorkload workload;
  workload.id = record.id;
  workload.family = record.described.run.family;
  workload.model = record.model;
  workload.setting = table_setting(record);
  workload.mode = record.mode;
  workload.split = trains_on(workload.family) ? learn::Split::train : learn::Split::test;
  workload.example = iteration.example;
  workload.formulas = formulas_of(record, iteration.figures);
  for (const NamedValue& global : globals_of(record, iteration.figures)) {
    workload.globals.push_back(static_cast<float>(global.value));
  }
  data_.column_names.clear();
  for (const NamedValue& column : columns_of(record, iteration.figures)) {
    workload.columns.push_back(static_cast<float>(column.value));
    data_.column_names.emplace_back(column.name);
  }
  const scale::ResourceSetting setting{.servers = record.servers,
                                       .workers = record.workers,
                                       .bits_per_second = record.bits_per_second,
                                       .sync = record.mode != "async",
                                       .links = simulated_links(record)};
  workload.simulated = flat_metrics(scale::simulate_resources(iteration.load, setting, rates_).metrics);
  return workload;
}

Status DripleWorkloadBuilder::add_measured(const ResourceRecord& record) {
  const learn::ResourceMetrics window = flat_metrics(record.measured.metrics);
  const std::string key = record.id + " " + table_setting(record);
  if (const auto known = measured_.find(key); known != measured_.end()) {
    learn::add_window(data_.workloads[known->second], window);
    return {};
  }
  auto workload = workload_of(record);
  if (!workload) return workload.error();
  learn::add_window(*workload, window);
  measured_[key] = data_.workloads.size();
  data_.workloads.push_back(std::move(*workload));
  return {};
}

Status DripleWorkloadBuilder::add_simulated(const ResourceRecord& record) {
  auto workload = workload_of(record);
  if (!workload) return workload.error();
  workload->setting = learn::kSimulatedPrefix + workload->setting;
  learn::add_window(*workload, workload->simulated);
  data_.workloads.push_back(std::move(*workload));
  return {};
}

}  // namespace forerun
