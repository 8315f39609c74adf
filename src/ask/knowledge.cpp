#include "ask/knowledge.h"

namespace forerun::ask {

Result<std::shared_ptr<const CostModels>> Knowledge::with(const std::vector<std::string>& device_files) {
  const std::lock_guard lock(loading_);
  if (device_files.empty() && shared_) return shared_;
  Result<CostModels> loaded = load_cost_models(device_files);
  if (!loaded) return loaded.error();
  auto models = std::make_shared<const CostModels>(std::move(*loaded));
  if (device_files.empty()) shared_ = models;
  return models;
}

}  // namespace forerun::ask
