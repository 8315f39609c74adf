#include "report/scale_records.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/json_writer.h"
#include "report/scale_resources.h"

namespace forerun {
namespace {

constexpr std::array<std::string_view, 9> kMeasuredFields = {
    "series", "levels", "phases_ms", "cost_s", "window_ms", "iterations", "gpu_source", "worker_gpu_bytes", "env"};

bool is_measured(std::string_view field) {
  return std::find(kMeasuredFields.begin(), kMeasuredFields.end(), field) != kMeasuredFields.end();
}

std::string metrics_text(const ResourceAnswer& answer) {
  JsonWriter json;
  write_metrics(json, answer);
  return json.take();
}

// What the simulation puts in place of what was measured, in the order of a record that had none of it.
std::vector<WorkloadField> simulated_fields(const RecordedWorkload& workload) {
  const auto text = [](const auto& value) { return JsonWriter().value(value).take(); };
  const scale::ResourceSetting& setting = workload.setting;
  const ResourceAnswer& answer = workload.simulated;
  return {{"source", text("simulation")},
          {"servers", text(setting.servers)},
          {"workers", text(setting.workers)},
          {"link_bits_per_second", text(setting.bits_per_second)},
          {"parameters", text(answer.parameters)},
          {"gpu_times", text("kernels")},
          {"iteration_ms", text(std::vector<double>{milliseconds(answer.use.iteration)})},
          {"metrics", metrics_text(answer)}};
}

}  // namespace

std::string simulated_record(const RecordedWorkload& workload) {
  std::vector<WorkloadField> fields;
  std::copy_if(workload.fields.begin(), workload.fields.end(), std::back_inserter(fields),
               [](const WorkloadField& field) { return !is_measured(field.name); });
  for (WorkloadField& made : simulated_fields(workload)) {
    const auto same = [&](const WorkloadField& field) { return field.name == made.name; };
    const auto found = std::find_if(fields.begin(), fields.end(), same);
    if (found != fields.end()) {
      found->json = std::move(made.json);
    } else {
      fields.push_back(std::move(made));
    }
  }
  JsonWriter json;
  json.begin_object();
  for (const WorkloadField& field : fields) json.key(field.name).raw(field.json);
  return json.end_object().take();
}

}  // namespace forerun
