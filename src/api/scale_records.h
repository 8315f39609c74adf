// Simulates the workloads of `resources/1` records (docs/records.md), also of those that nobody measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/scale_resources.h"
#include "base/work_control.h"
#include "predict/cost_models.h"
#include "testbed/host_rates.h"

namespace forerun {

struct WorkloadField {
  std::string name;
  std::string json;  // its value
};

struct RecordedWorkload {
  std::string id;
  std::string family;
  std::vector<WorkloadField> fields;  // the record as it stands
  scale::WorkerLoad load;
  scale::ResourceSetting setting;
  ResourceAnswer simulated;
};

struct WorkloadHandlers {
  std::function<void(const RecordedWorkload&)> workload;
  std::function<void(const Error&)> bad_record;  // a record that cannot be simulated; the rest goes on
};

// Every record of the files whose status is ok: model, batch and setup as it says, on its GPU or `gpu` where it names
// none.
Status simulate_records(const std::vector<std::string>& files, const std::string& gpu, const CostModels& cost_models,
                        const scale::HostRates& rates, const WorkloadHandlers& handlers,
                        const WorkControl& control = {});

}  // namespace forerun
