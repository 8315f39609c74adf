// The simulation of distributed training against what forerun.testbed measured (data/resources): `forerun calibrate testbed`
// fits the rates of the hosts to training families, `forerun eval --suite testbed` judges on the others.
//
// Windows of one workload and setting are averaged. Links that were shared in another way are settings of their own
// (ingest/resources/link_state.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/accuracy/resource_accuracy.h"
#include "predict/cost_models.h"
#include "testbed/host_rates.h"

namespace forerun {

struct TestbedRequest {
  std::vector<std::string> records;  // files or folders; empty: the data folder's
  std::string out;                   // of the fitted rates; empty: the data folder's
  std::function<void(const Error&)> bad_record;
  std::function<void(double)> progress;  // of the fit: the error so far
};

// Simulated against measured metrics; families that nothing was fitted to (data/h200/split.json) apart.
Result<ResourceAccuracy> evaluate_testbed(const TestbedRequest& request, const CostModels& cost_models);

// Fits the rates of the hosts to training families and writes them. Links with another congestion control than Reno tell
// phases only.
struct HostRatesOutcome {
  std::string file;
  int64_t workloads = 0;
  double error = 0;  // mean of the twelve numbers over those workloads
  scale::HostRates rates;
};
Result<HostRatesOutcome> calibrate_testbed(const TestbedRequest& request, const CostModels& cost_models);

}  // namespace forerun
