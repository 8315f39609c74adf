// Fits the host model to the measured iterations of a folder, and writes it where `predict` looks for it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lab/calibrate/host_regression.h"
#include "records/data_scan.h"
#include "records/data_split.h"

namespace forerun {

struct HostRequest {
  std::vector<std::string> files;  // of run records
  std::set<std::string> without;   // families of the training split that are left out
  std::string out;                 // empty: the data folder's
  HostRegressionOptions options;
  std::function<void(const DataProblem&)> problem;
};

struct HostOutcome {
  std::string file;
  HostRegression fit;
  std::vector<HeldOutFamily> held_out;  // host-bound iterations of each family, predicted by a fit to the others
  double held_out_error = 0;            // mean relative one over all of these
};

Result<HostOutcome> calibrate_host(const HostRequest& request);

// A measured iteration as the fit sees it.
HostSample host_sample(const RunRecord& record);
// Those of the training part that the host bounds.
Result<std::vector<HostSample>> load_host_samples(const std::vector<std::string>& files, const TrainingPart& part,
                                                  const std::function<void(const DataProblem&)>& problem);

}  // namespace forerun
