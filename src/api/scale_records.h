// Simulates the workloads of `resources/1` records (docs/records.md): to compare with what they measured, or to make
// many workloads that nobody measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/knowledge.h"
#include "base/result.h"
#include "report/resource_accuracy.h"
#include "report/scale_resources.h"
#include "scale/host_rates.h"

namespace forerun {

struct RecordedWorkload {
  std::string id;
  std::string family;
  std::string line;  // the record as it stands
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
Status simulate_records(const std::vector<std::string>& files, const std::string& gpu, const Knowledge& knowledge,
                        const scale::HostRates& rates, const WorkloadHandlers& handlers);

// A record of the same workload with the simulated metrics in place of the measured, and source "simulation".
std::string simulated_record(const RecordedWorkload& workload);

// Simulated against measured metrics; families that nothing was fitted to (data/h200/split.json) apart.
Result<ResourceAccuracy> evaluate_testbed(const std::vector<std::string>& files, const Knowledge& knowledge,
                                          const std::function<void(const Error&)>& bad_record);

// Fits the rates of the hosts to measured records of training families and writes them to `out` (empty: the data
// folder's). Records of other congestion control than Reno tell phases only.
struct HostRatesOutcome {
  std::string file;
  int64_t records = 0;
  double error = 0;  // mean of the twelve numbers over those records
  scale::HostRates rates;
};
Result<HostRatesOutcome> train_testbed(const std::vector<std::string>& files, const Knowledge& knowledge,
                                       const std::string& out, const std::function<void(const Error&)>& bad_record,
                                       const std::function<void(double)>& progress = {});

}  // namespace forerun
