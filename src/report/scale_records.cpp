#include "report/scale_records.h"

#include <nlohmann/json.hpp>

#include "report/scale_resources.h"

namespace forerun {

std::string simulated_record(const RecordedWorkload& workload) {
  using Json = nlohmann::ordered_json;
  Json record = Json::parse(workload.line);
  const Json answer = Json::parse(to_json(workload.simulated));
  for (const char* measured : {"series", "levels", "phases_ms", "cost_s", "window_ms", "iterations", "gpu_source",
                               "worker_gpu_bytes", "env"}) {
    record.erase(measured);
  }
  record["source"] = "simulation";
  record["servers"] = workload.setting.servers;
  record["workers"] = workload.setting.workers;
  record["link_bits_per_second"] = workload.setting.bits_per_second;
  record["parameters"] = answer["parameters"];
  record["iteration_ms"] = Json::array({answer["iteration_ms"]});
  record["metrics"] = answer["metrics"];
  return record.dump();
}

}  // namespace forerun
