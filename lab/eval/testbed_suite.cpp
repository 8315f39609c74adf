#include "lab/eval/testbed_suite.h"

#include <map>

#include "api/scale_resources.h"
#include "base/data_dir.h"
#include "base/output_file.h"
#include "ingest/resources/link_state.h"
#include "lab/calibrate/host_tuning.h"
#include "lab/training_data/driple_data.h"
#include "predict/predict.h"
#include "records/data_files.h"
#include "records/data_split.h"

namespace forerun {
namespace {

constexpr const char* kTestbedRemedy = "name files of forerun.testbed with --data";

// A workload in a setting, with the means of its windows.
struct TestbedWorkload {
  std::string family;
  std::string setting;  // "P1w2-10G-even sync"
  bool other_tcp = false;
  scale::MeasuredWorkload measured;
  std::vector<MeasuredResources> windows;
};

scale::MeasuredPhases phases_of(const MeasuredResources& window, const TestbedWorkload& workload, double parameters) {
  const scale::MeasuredWorkload& m = workload.measured;
  scale::MeasuredPhases p;
  p.bytes = 4 * parameters;
  p.servers = m.setting.servers;
  p.workers = m.setting.workers;
  p.bits_per_second = m.setting.bits_per_second;
  p.sync = m.setting.sync;
  p.to_host = window.steps.to_host;
  p.to_device = window.steps.to_device;
  p.exchange = window.steps.exchange;
  p.server_update = window.steps.server_update;
  p.compute = window.steps.compute;
  p.gpu = window.steps.gpu_level;
  p.memory = window.steps.memory_level;
  p.tensors = m.load.tensors;
  p.optimizer = m.load.optimizer;
  p.computing = window.computing_ms;
  for (size_t i = 0; i < p.traffic.size(); ++i) p.traffic[i] = 1e3 * m.load.traffic[i];
  return p;
}

void average_windows(TestbedWorkload& workload) {
  const auto count = static_cast<double>(workload.windows.size());
  for (const MeasuredResources& window : workload.windows) {
    for (size_t i = 0; i < window.metrics.size(); ++i) {
      const BurstFigures& figures = window.metrics[i];
      std::array<double, 3>& means = workload.measured.metrics[i];
      const bool own_times =
          window.gpu_times == GpuTimes::kernels || kMeasuredResources[i] != std::string_view("memory");
      means[0] += own_times ? figures.idle_ms / count : 0;
      means[1] += own_times ? figures.burst_ms / count : 0;
      means[2] += figures.amount / count;
    }
  }
}

// What was measured, and which families may be fitted to.
struct TestbedData {
  std::vector<TestbedWorkload> workloads;
  std::vector<scale::MeasuredPhases> phases;  // of every window of a training family
  DataSplit split;
  int64_t records = 0;
  int64_t passed_over = 0;

  [[nodiscard]] bool trains_on(const std::string& family) const { return split.trains_on_family(family); }
};

Result<TestbedWorkload> testbed_workload(const ResourceRecord& record, const Device& device,
                                         const CostModels& cost_models) {
  const auto run = recorded_run(record.described, device);
  if (!run) return run.error();
  TestbedWorkload workload;
  workload.family = run->family;
  workload.setting = divided_setting(record) + " " + record.mode;
  workload.measured.gpu_times = record.measured.gpu_times;
  workload.other_tcp = record.tcp == "default";
  workload.measured.load = worker_load(*run, device, cost_models);
  workload.measured.setting = {.servers = record.servers,
                               .workers = record.workers,
                               .bits_per_second = record.bits_per_second,
                               .sync = record.mode != "async",
                               .links = simulated_links(record)};
  return workload;
}

Result<std::vector<ResourceRecord>> testbed_records(const TestbedRequest& request, TestbedData& data) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  std::vector<std::string> paths = request.records;
  if (paths.empty()) paths.push_back((*folder / kResourceRecords).string());
  const auto files = record_files(paths);
  if (!files) return files.error();
  auto split = DataSplit::beside({(*folder / "h200" / DataSplit::kFile).string()});
  if (!split) return split.error();
  data.split = std::move(*split);
  std::vector<ResourceRecord> records;
  ResourceReader reader;
  const auto keep = [&](ResourceRecord&& record) { records.push_back(std::move(record)); };
  const auto bad = [&](const Error& error) {
    ++data.passed_over;
    if (request.bad_record) request.bad_record(error);
  };
  for (const std::string& file : *files) {
    if (const Status status = reader.read(file, keep, bad); !status.ok()) return status.error();
  }
  mark_links(records, [&](const std::string& family) { return data.trains_on(family); });
  return records;
}

Result<TestbedData> load_testbed(const TestbedRequest& request, const CostModels& cost_models) {
  TestbedData data;
  const auto records = testbed_records(request, data);
  if (!records) return records.error();
  const auto device = cost_models.devices.find(kDefaultGpu);
  if (!device) return device.error();
  std::map<std::string, size_t> known;  // by id and setting
  for (const ResourceRecord& record : *records) {
    const auto [place, added] = known.try_emplace(record.id + " " + divided_setting(record), data.workloads.size());
    if (added) {
      auto workload = testbed_workload(record, *device, cost_models);
      if (!workload) {
        known.erase(place);
        ++data.passed_over;
        if (request.bad_record) request.bad_record(workload.error().within(record.id));
        continue;
      }
      data.workloads.push_back(std::move(*workload));
    }
    TestbedWorkload& workload = data.workloads[place->second];
    workload.windows.push_back(record.measured);
    ++data.records;
    if (data.trains_on(workload.family)) {
      double bytes = 0;
      for (const scale::LayerLoad& layer : workload.measured.load.layers) {
        bytes += static_cast<double>(layer.gradient.value);
      }
      data.phases.push_back(phases_of(record.measured, workload, bytes / 4));
    }
  }
  if (data.workloads.empty()) return Error{"no record with metrics is there", "", kTestbedRemedy};
  for (TestbedWorkload& workload : data.workloads) average_windows(workload);
  return data;
}

Status write_rates(const HostRatesOutcome& outcome) {
  const std::string source = "`forerun calibrate testbed`: " + std::to_string(outcome.workloads) +
                             " workloads of training families (data/h200/split.json)";
  return write_whole_file(outcome.file, to_json(outcome.rates, source));
}

}  // namespace

Result<ResourceAccuracy> evaluate_testbed(const TestbedRequest& request, const CostModels& cost_models) {
  const auto data = load_testbed(request, cost_models);
  if (!data) return data.error();
  const auto rates = testbed_rates();
  if (!rates) return rates.error();
  ResourceAccuracy accuracy;
  accuracy.title = "The testbed simulated, against what was measured: mean percentage errors of bursts and idles";
  accuracy.records = data->records;
  accuracy.passed_over = data->passed_over;
  for (const TestbedWorkload& workload : data->workloads) {
    const scale::MeasuredWorkload& m = workload.measured;
    const scale::BurstFigureTable simulated =
        scale::burst_figures(scale::simulate_resources(m.load, m.setting, *rates), m.gpu_times);
    for (size_t i = 0; i < simulated.size(); ++i) {
      accuracy.cases.push_back(
          {workload.setting, scale::kResources[i], m.metrics[i], simulated[i], !data->trains_on(workload.family)});
    }
  }
  return accuracy;
}

Result<HostRatesOutcome> calibrate_testbed(const TestbedRequest& request, const CostModels& cost_models) {
  const auto folder = data_dir();
  if (!folder) return folder.error();
  const auto data = load_testbed(request, cost_models);
  if (!data) return data.error();
  std::vector<scale::MeasuredWorkload> workloads;
  for (const TestbedWorkload& workload : data->workloads) {
    if (data->trains_on(workload.family) && !workload.other_tcp) workloads.push_back(workload.measured);
  }
  if (workloads.empty()) return Error{"no record of a training family is there to fit to", "", kTestbedRemedy};
  scale::HostRates first = scale::fit_host_rates(data->phases, {});
  // Workers that share a GPU or wait for each other hide these.
  const scale::HostRates untold;
  first.compute_factor = untold.compute_factor;
  first.gpu_factor = untold.gpu_factor;
  first.link_share = untold.link_share;
  HostRatesOutcome outcome;
  outcome.file = request.out.empty() ? (*folder / kHostRatesFile).string() : request.out;
  outcome.workloads = static_cast<int64_t>(workloads.size());
  outcome.rates = scale::tune_host_rates(workloads, first, request.progress);
  outcome.error = scale::simulation_error(workloads, outcome.rates);
  if (const Status status = write_rates(outcome); !status.ok()) return status.error();
  return outcome;
}

}  // namespace forerun
