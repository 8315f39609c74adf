// Knowledge: the cost models that answers draw on, read once and shared by all who ask at the same time.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "predict/cost_models.h"

namespace forerun::ask {

class Knowledge {
 public:
  // With further devices from files of the user, which are read every time: they may have changed. An Error is not kept, so
  // that a folder of data that was not there may come.
  Result<std::shared_ptr<const CostModels>> with(const std::vector<std::string>& device_files = {});

 private:
  std::mutex loading_;
  std::shared_ptr<const CostModels> shared_;  // guarded by loading_
};

}  // namespace forerun::ask
