#include "lab/training_data/driple_builder.h"

#include <fmt/format.h>

#include "api/scale_resources.h"
#include "lab/dataset/record_example.h"
#include "predict/predict.h"

namespace forerun {
namespace {

constexpr size_t kMemoryIdle = 3, kMemoryBurst = 4, kMemoryAmount = 5;

// The twelve numbers. By clocks the GPU's have the times of the workers' clocks, which every record tells; memory's own times
// come from kernels.
template <class Figures>
learn::ResourceMetrics flat_metrics(const std::array<Figures, 4>& metrics, const std::array<Figures, 2>& clocks,
                                    GpuTimes gpu_times) {
  const bool by_clocks = gpu_times == GpuTimes::clocks;
  learn::ResourceMetrics flat{};
  for (size_t i = 0; i < 4; ++i) {
    const Figures& figures = i == 0 && by_clocks ? clocks[0] : metrics[i];
    flat[3 * i] = figures.idle_ms;
    flat[3 * i + 1] = figures.burst_ms;
    flat[3 * i + 2] = figures.amount;
  }
  if (by_clocks) flat[kMemoryAmount] = clocks[1].amount;
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

void DripleWorkloadBuilder::learn_link_states(std::span<const ResourceRecord> records) {
  std::map<std::string, double> windows;
  for (const ResourceRecord& record : records) {
    if (record.links == LinksSeen::one || !trains_on(record.described.run.family)) continue;
    windows[table_setting(record)] += 1;
    link_shares_[table_setting(record)][simulated_links(record)] += 1;
  }
  for (auto& [setting, shares] : link_shares_) {
    for (auto& [state, share] : shares) share /= windows[setting];
  }
}

DripleWorkloadBuilder::LinkShares DripleWorkloadBuilder::links_of(const ResourceRecord& record) const {
  const auto known = link_shares_.find(table_setting(record));
  return known != link_shares_.end() ? known->second : LinkShares{{simulated_links(record), 1}};
}

Result<learn::ResourceWorkload> DripleWorkloadBuilder::workload_of(const ResourceRecord& record,
                                                                   const LinkShares& links) {
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
  const auto even = links.find(scale::LinkState::even);
  for (const NamedValue& global : globals_of(record, iteration.figures, even == links.end() ? 0 : even->second)) {
    workload.globals.push_back(static_cast<float>(global.value));
  }
  data_.column_names.clear();
  for (const NamedValue& column : columns_of(record, iteration.figures)) {
    workload.columns.push_back(static_cast<float>(column.value));
    data_.column_names.emplace_back(column.name);
  }
  for (const auto& [state, share] : links) {
    const scale::ResourceSetting setting{.servers = record.servers,
                                         .workers = record.workers,
                                         .bits_per_second = record.bits_per_second,
                                         .sync = record.mode != "async",
                                         .links = state};
    const scale::ResourceUse use = scale::simulate_resources(iteration.load, setting, rates_);
    const learn::ResourceMetrics metrics = flat_metrics(use.metrics, use.clocks, gpu_times_);
    for (size_t m = 0; m < metrics.size(); ++m) workload.simulated[m] += share * metrics[m];
  }
  return workload;
}

Status DripleWorkloadBuilder::add_window_of(const ResourceRecord& record, const std::string& setting,
                                            const LinkShares& links, learn::Labels labels) {
  learn::ResourceMetrics window = flat_metrics(record.measured.metrics, record.measured.by_clocks, gpu_times_);
  const bool own_times = record.measured.gpu_times == GpuTimes::kernels;
  const std::string key = record.id + " " + setting;
  auto known = measured_.find(key);
  if (known == measured_.end()) {
    auto workload = workload_of(record, links);
    if (!workload) return workload.error();
    workload->setting = setting;
    workload->labels = labels;
    known = measured_.emplace(key, data_.workloads.size()).first;
    data_.workloads.push_back(std::move(*workload));
  }
  learn::ResourceWorkload& workload = data_.workloads[known->second];
  for (const size_t m : {kMemoryIdle, kMemoryBurst}) {
    workload.judged[m] = workload.judged[m] && own_times;
    if (!own_times) window[m] = workload.simulated[m];
  }
  learn::add_window(workload, window);
  return {};
}

Status DripleWorkloadBuilder::add_measured(const ResourceRecord& record) {
  return add_window_of(record, table_setting(record), links_of(record), learn::Labels::measured);
}

Status DripleWorkloadBuilder::add_divided(const ResourceRecord& record) {
  if (record.links == LinksSeen::one) return {};
  return add_window_of(record, divided_setting(record), {{simulated_links(record), 1}}, learn::Labels::divided);
}

Status DripleWorkloadBuilder::add_labelled_by_simulation(const ResourceRecord& record, const std::string& setting) {
  auto workload = workload_of(record, links_of(record));
  if (!workload) return workload.error();
  workload->setting = setting;
  workload->labels = learn::Labels::simulated;
  learn::add_window(*workload, workload->simulated);
  data_.workloads.push_back(std::move(*workload));
  return {};
}

Status DripleWorkloadBuilder::add_simulated(const ResourceRecord& record) {
  return add_labelled_by_simulation(record, learn::kSimulatedPrefix + table_setting(record));
}

Status DripleWorkloadBuilder::add_unmeasured(const ResourceRecord& record) {
  return add_labelled_by_simulation(record, table_setting(record) + learn::kUnmeasuredSuffix);
}

Status DripleWorkloadBuilder::add_asked(const ResourceRecord& record) {
  auto workload = workload_of(record, links_of(record));
  if (!workload) return workload.error();
  data_.workloads.push_back(std::move(*workload));
  return {};
}

}  // namespace forerun
