// Knowledge: what answers draw on, shared by all who ask at the same time: the cost models, read once, and the iterations that were
// asked about last.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "predict/cost_models.h"
#include "predict/kept_runs.h"

namespace forerun::ask {

class Knowledge {
 public:
  // With further devices from files of the user, which are read every time: they may have changed. `machine` as in
  // load_cost_models_for; the file that was used last is kept, and read again once it has changed. An Error is not kept, so that
  // a folder of data that was not there may come.
  Result<std::shared_ptr<const CostModels>> with(const std::vector<std::string>& device_files = {},
                                                 const std::string& machine = "");

  KeptRuns& runs() { return runs_; }

 private:
  KeptRuns runs_{build_run};
  std::mutex loading_;
  std::shared_ptr<const CostModels> shared_;  // guarded by loading_, as are those below
  std::shared_ptr<const CostModels> calibrated_;
  std::string calibrated_by_;  // the file, its size and when it was written
};

}  // namespace forerun::ask
