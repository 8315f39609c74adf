#include "api/scale_records.h"

#include <nlohmann/json.hpp>

#include "api/scale_resources.h"
#include "base/line_reader.h"
#include "ingest/capture/run_record.h"
#include "predict/predict.h"

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

Result<RecordedWorkload> simulated(const WorkloadJson& record, const std::string& gpu, const CostModels& cost_models,
                                   const scale::HostRates& rates, RunDecoder& decoder) {
  std::string named = gpu;
  if (const auto environment = record.find("env"); environment != record.end() && environment->is_object()) {
    if (const std::string own = text_of(*environment, "gpu"); !own.empty()) named = own;
  }
  const auto device = asked_gpu(named, cost_models);
  if (!device) return device.error();
  auto setting = scale::resource_setting(text_of(record, "setting"));
  if (!setting) return setting.error();
  const auto run = described_run(record, *device, decoder);
  if (!run) return run.error();
  const std::string mode = text_of(record, "mode");
  setting->sync = mode != "async";
  const std::string tcp = text_of(record, "tcp");
  if (!tcp.empty() && tcp != "reno") setting->links = scale::LinkState::even;
  RecordedWorkload workload;
  workload.id = text_of(record, "id");
  workload.family = text_of(record, "family");
  workload.load = worker_load(*run, *device, cost_models);
  workload.setting = *setting;
  ResourceAnswer& answer = workload.simulated;
  answer.calibration = calibration_told(cost_models, *device, *run);
  answer.model = text_of(record, "model");
  answer.gpu = device->name;
  answer.setting = text_of(record, "setting");
  answer.mode = mode;
  answer.batch = run->input.batch;
  answer.parameters = run->graph.parameter_count();
  answer.use = scale::simulate_resources(workload.load, *setting, rates);
  return workload;
}

// Calls `use` with every line that is a resources/1 record of a run that went well.
Status for_each_record(const std::string& path, const std::function<void(WorkloadJson&, const std::string&)>& use,
                       const std::function<void(const Error&)>& bad_record, Work& work) {
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
    if (Status status = work.advance(); !status) return status;
  }
}

}  // namespace

Status simulate_records(const std::vector<std::string>& files, const std::string& gpu, const CostModels& cost_models,
                        const scale::HostRates& rates, const WorkloadHandlers& handlers, const WorkControl& control) {
  Work work(control, "workloads");
  RunDecoder decoder;
  for (const std::string& file : files) {
    const auto use = [&](WorkloadJson& record, const std::string& where) {
      auto workload = simulated(record, gpu, cost_models, rates, decoder);
      if (!workload) return handlers.bad_record(workload.error().within(where));
      for (const auto& [name, value] : record.items()) workload->fields.push_back({name, value.dump()});
      handlers.workload(*workload);
    };
    if (const Status status = for_each_record(file, use, handlers.bad_record, work); !status) return status.error();
  }
  return {};
}

}  // namespace forerun
