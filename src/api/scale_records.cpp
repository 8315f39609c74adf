#include "api/scale_records.h"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/data_files.h"
#include "api/predict.h"
#include "api/scale_resources.h"
#include "base/data_dir.h"
#include "base/line_reader.h"
#include "ingest/capture/run_record.h"
#include "scale/host_tuning.h"

namespace forerun {
namespace {

using WorkloadJson = nlohmann::ordered_json;

constexpr const char* kWorkloadRemedy = "leave the record out, or collect it again with forerun.testbed";

std::string text_of(const WorkloadJson& record, const char* field) {
  const auto found = record.find(field);
  return found != record.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// What a run record says of itself, without a graph: the zoo builds it.
Result<TrainingRun> described_run(const WorkloadJson& record, const Device& gpu, RunDecoder& decoder) {
  WorkloadJson head;
  for (const char* field : {"id", "family", "args", "input", "run"}) {
    if (!record.contains(field)) return Error{std::string("the field ") + field + " is missing", "", kWorkloadRemedy};
    head[field] = record[field];
  }
  head["params"] = 0;  // which the zoo tells
  std::string text = head.dump();
  const size_t length = text.size();
  text.append(LineReader::kPadding, ' ');
  auto read = decoder.decode(std::string_view(text).substr(0, length), Fields::description);
  if (!read) return read.error();
  read->has_graph = false;
  return recorded_run(*read, gpu);
}

Result<RecordedWorkload> simulated(const WorkloadJson& record, const std::string& gpu, const Knowledge& knowledge,
                                   const scale::HostRates& rates, RunDecoder& decoder) {
  std::string named = gpu;
  if (const auto environment = record.find("env"); environment != record.end() && environment->is_object()) {
    if (const std::string own = text_of(*environment, "gpu"); !own.empty()) named = own;
  }
  const auto device = knowledge.devices.find(named);
  if (!device) return device.error();
  auto setting = scale::resource_setting(text_of(record, "setting"));
  if (!setting) return setting.error();
  const auto run = described_run(record, *device, decoder);
  if (!run) return run.error();
  const std::string mode = text_of(record, "mode");
  setting->sync = mode != "async";
  const std::string tcp = text_of(record, "tcp");
  setting->fair = !tcp.empty() && tcp != "reno";
  RecordedWorkload workload;
  workload.id = text_of(record, "id");
  workload.family = text_of(record, "family");
  workload.load = worker_load(*run, *device, knowledge);
  workload.setting = *setting;
  ResourceAnswer& answer = workload.simulated;
  answer.model = text_of(record, "model");
  answer.gpu = device->name;
  answer.setting = text_of(record, "setting");
  answer.mode = mode;
  answer.batch = run->input.batch;
  answer.parameters = run->graph.parameter_count();
  answer.use = scale::simulate_resources(workload.load, *setting, rates);
  return workload;
}

double number_of(const WorkloadJson& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number() ? found->get<double>() : -1;
}

WorkloadJson part_of(const WorkloadJson& record, const char* field) {
  const auto found = record.find(field);
  return found != record.end() && found->is_object() ? *found : WorkloadJson::object();
}

// The mean milliseconds of an iteration in which any worker computes.
double computing_ms(const WorkloadJson& record) {
  const double window = number_of(record, "window_ms");
  const double iterations = number_of(record, "iterations");
  const WorkloadJson series = part_of(record, "series");
  const auto compute = series.find("compute");
  if (compute == series.end() || !compute->is_array() || compute->empty() || !(iterations > 0)) return -1;
  double sum = 0;
  for (const WorkloadJson& value : *compute) sum += value.is_number() ? value.get<double>() : 0;
  return sum / static_cast<double>(compute->size()) / 100 * window / iterations;
}

// What a record measured, beside what was simulated of it.
scale::MeasuredPhases phases_of(const RecordedWorkload& workload, const WorkloadJson& record) {
  const ResourceAnswer& answer = workload.simulated;
  scale::MeasuredPhases p;
  p.bytes = 4 * static_cast<double>(answer.parameters);
  p.servers = workload.setting.servers;
  p.workers = workload.setting.workers;
  p.bits_per_second = workload.setting.bits_per_second;
  p.sync = answer.mode != "async";
  const WorkloadJson phases = part_of(record, "phases_ms");
  p.to_host = number_of(phases, "to_host");
  p.to_device = number_of(phases, "to_device");
  p.exchange = number_of(phases, "exchange");
  p.server_update = number_of(phases, "server_update");
  p.compute = number_of(phases, "compute");
  p.simulated_compute = milliseconds(answer.use.compute);
  const WorkloadJson levels = part_of(record, "levels");
  p.gpu = number_of(levels, "gpu");
  p.memory = number_of(levels, "memory");
  p.simulated_gpu = answer.use.metrics[0].amount;
  p.simulated_memory = answer.use.metrics[1].amount;
  p.tensors = workload.load.tensors;
  p.optimizer = workload.load.optimizer;
  p.computing = computing_ms(record);
  for (size_t i = 0; i < p.traffic.size(); ++i) p.traffic[i] = 1e3 * workload.load.traffic[i];
  return p;
}

std::array<double, 3> numbers_of(const WorkloadJson& metrics) {
  std::array<double, 3> numbers = {};
  const char* names[] = {"idle_ms", "burst_ms", "amount"};
  for (size_t i = 0; i < 3; ++i) {
    const auto found = metrics.find(names[i]);
    if (found != metrics.end() && found->is_number()) numbers[i] = found->get<double>();
  }
  return numbers;
}

// By kResources; zeros where a record has no such metrics.
scale::BurstFigureTable measured_figures(const WorkloadJson& record) {
  scale::BurstFigureTable figures = {};
  const WorkloadJson metrics = part_of(record, "metrics");
  for (size_t i = 0; i < figures.size(); ++i) figures[i] = numbers_of(part_of(metrics, scale::kResources[i]));
  return figures;
}

// Whether rates may be fitted to a family's records: those of data/h200/split.json's list "train", by which the models
// of GPU times were made too.
Result<std::function<bool(const std::string&)>> training_families() {
  const auto data = data_dir();
  if (!data) return data.error();
  auto splits = family_splits({(*data / "h200" / "split.json").string()});
  if (!splits) return splits.error();
  return std::function<bool(const std::string&)>([splits = std::move(*splits)](const std::string& family) {
    const auto found = splits.find(family);
    return found != splits.end() && found->second == "train";
  });
}

// Calls `use` with every line that is a resources/1 record of a run that went well.
Status for_each_record(const std::string& path, const std::function<void(WorkloadJson&, const std::string&)>& use,
                       const std::function<void(const Error&)>& bad_record) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.error();
  while (true) {
    auto line = lines->next();
    if (!line) return line.error();
    if (!*line) return {};
    if (is_blank(**line)) continue;
    const std::string where = path + ", line " + std::to_string(lines->line_number());
    const std::string text(**line);
    WorkloadJson record = WorkloadJson::parse(text, nullptr, false);
    if (record.is_discarded() || !record.is_object()) {
      bad_record({"is no JSON object", where, kWorkloadRemedy});
    } else if (text_of(record, "schema") == "resources/1" && text_of(record, "status") == "ok" &&
               record.contains("setting")) {
      use(record, where);
    }
  }
}

}  // namespace

Status simulate_records(const std::vector<std::string>& files, const std::string& gpu, const Knowledge& knowledge,
                        const scale::HostRates& rates, const WorkloadHandlers& handlers) {
  RunDecoder decoder;
  for (const std::string& file : files) {
    const auto use = [&](WorkloadJson& record, const std::string& where) {
      auto workload = simulated(record, gpu, knowledge, rates, decoder);
      if (!workload) return handlers.bad_record(workload.error().within(where));
      workload->line = record.dump();
      handlers.workload(*workload);
    };
    if (const Status status = for_each_record(file, use, handlers.bad_record); !status) return status.error();
  }
  return {};
}

std::string simulated_record(const RecordedWorkload& workload) {
  WorkloadJson record = WorkloadJson::parse(workload.line);
  const WorkloadJson answer = WorkloadJson::parse(to_json(workload.simulated));
  for (const char* measured : {"series", "levels", "phases_ms", "cost_s", "window_ms", "iterations", "gpu_source",
                               "worker_gpu_bytes", "env"}) {
    record.erase(measured);
  }
  record["source"] = "simulation";
  record["parameters"] = answer["parameters"];
  record["iteration_ms"] = WorkloadJson::array({answer["iteration_ms"]});
  record["metrics"] = answer["metrics"];
  return record.dump();
}

Result<ResourceAccuracy> evaluate_testbed(const std::vector<std::string>& files, const Knowledge& knowledge,
                                          const std::function<void(const Error&)>& bad_record) {
  const auto known = training_families();
  if (!known) return known.error();
  ResourceAccuracy accuracy;
  accuracy.title = "The testbed simulated, against what was measured: mean percentage errors of bursts and idles";
  WorkloadHandlers handlers;
  handlers.bad_record = [&](const Error& error) {
    ++accuracy.passed_over;
    bad_record(error);
  };
  handlers.workload = [&](const RecordedWorkload& workload) {
    const scale::BurstFigureTable measured = measured_figures(WorkloadJson::parse(workload.line));
    if (measured == scale::BurstFigureTable()) {
      ++accuracy.passed_over;
      return;
    }
    ++accuracy.records;
    const scale::BurstFigureTable simulated = scale::burst_figures(workload.simulated.use);
    const std::string tcp = workload.setting.fair ? ", other TCP" : "";
    for (size_t i = 0; i < measured.size(); ++i) {
      accuracy.cases.push_back({scale::setting_name(workload.setting) + tcp, scale::kResources[i], measured[i],
                                simulated[i], !(*known)(workload.family)});
    }
  };
  const auto rates = testbed_rates();
  if (!rates) return rates.error();
  const std::string gpu(kDefaultGpu);
  if (const Status status = simulate_records(files, gpu, knowledge, *rates, handlers); !status) return status.error();
  if (accuracy.cases.empty()) {
    return Error{"no record with metrics is there", files.empty() ? "" : files[0],
                 "name files of forerun.testbed with --data"};
  }
  return accuracy;
}

Result<HostRatesOutcome> train_testbed(const std::vector<std::string>& files, const Knowledge& knowledge,
                                       const std::string& out, const std::function<void(const Error&)>& bad_record,
                                       const std::function<void(double)>& progress) {
  const auto data = data_dir();
  if (!data) return data.error();
  const auto known = training_families();
  if (!known) return known.error();
  std::vector<scale::MeasuredPhases> phases;
  std::vector<scale::MeasuredWorkload> workloads;
  WorkloadHandlers handlers;
  handlers.bad_record = bad_record;
  handlers.workload = [&](const RecordedWorkload& workload) {
    if (!(*known)(workload.family)) return;
    const WorkloadJson record = WorkloadJson::parse(workload.line);
    phases.push_back(phases_of(workload, record));
    if (workload.setting.fair) return;
    workloads.push_back({workload.load, workload.setting, phases.back(), measured_figures(record)});
  };
  const std::string gpu(kDefaultGpu);
  if (const Status status = simulate_records(files, gpu, knowledge, {}, handlers); !status) return status.error();
  if (phases.empty()) {
    return Error{"no record of a training family is there to fit to", files.empty() ? "" : files[0],
                 "name files of forerun.testbed with --data"};
  }
  HostRatesOutcome outcome;
  outcome.file = out.empty() ? (*data / kHostRatesFile).string() : out;
  outcome.records = static_cast<int64_t>(phases.size());
  scale::HostRates first = scale::fit_host_rates(phases, {});
  // Workers that share a GPU or wait for each other hide these.
  const scale::HostRates untold;
  first.compute_factor = untold.compute_factor;
  first.gpu_factor = untold.gpu_factor;
  first.link_share = untold.link_share;
  outcome.rates = scale::tune_host_rates(workloads, first, progress);
  outcome.error = scale::simulation_error(workloads, outcome.rates);
  std::ofstream file(outcome.file);
  file << to_json(outcome.rates, "`forerun train testbed`: " + std::to_string(phases.size()) +
                                     " records of training families (data/h200/split.json)");
  file.close();
  if (file.fail()) return Error{"cannot be written", outcome.file, "name a file in a folder that is there with --out"};
  return outcome;
}

}  // namespace forerun
