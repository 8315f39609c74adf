#include "ask/knowledge.h"

#include <fmt/format.h>

#include <filesystem>

#include "predict/machine_calibration.h"

namespace forerun::ask {
namespace {

// Tells a file from what it was before; empty where it cannot be told.
std::string state_of(const std::string& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error) return "";
  const auto written = std::filesystem::last_write_time(file, error);
  return error ? "" : fmt::format("{} {} {}", size, written.time_since_epoch().count(), file);
}

}  // namespace

Result<std::shared_ptr<const CostModels>> Knowledge::with(const std::vector<std::string>& device_files,
                                                          const std::string& machine) {
  const std::lock_guard lock(loading_);
  const std::string file = machine == kNoMachine ? "" : machine.empty() ? configured_machine() : machine;
  const std::string state = file.empty() ? "" : state_of(file);
  if (device_files.empty() && file.empty() && shared_) return shared_;
  if (device_files.empty() && !state.empty() && calibrated_ && state == calibrated_by_) return calibrated_;
  Result<CostModels> loaded = load_cost_models_for(file.empty() ? kNoMachine : file, device_files);
  if (!loaded) return loaded.error();
  auto models = std::make_shared<const CostModels>(std::move(*loaded));
  if (device_files.empty() && file.empty()) shared_ = models;
  if (device_files.empty() && !state.empty()) {
    calibrated_ = models;
    calibrated_by_ = state;
  }
  return models;
}

}  // namespace forerun::ask
