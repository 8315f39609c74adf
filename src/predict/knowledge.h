// Knowledge: what every prediction draws on, read once from the data folder: devices, cost constants, host costs,
// workspaces.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cost/analytic/constants.h"
#include "cost/host/host.h"
#include "cost/hybrid/device_scale.h"
#include "cost/hybrid/hybrid.h"
#include "cost/hybrid/spread.h"
#include "device/catalogue.h"
#include "memory/memory_spread.h"
#include "memory/workspace_table.h"

namespace forerun {

struct Knowledge {
  DeviceCatalogue devices;
  AnalyticConstants analytic;
  HostConstants host;
  std::optional<hybrid::Corrector> corrector;  // missing: GPU times are those of the analytic model
  hybrid::DeviceScale scale;                   // how its corrections carry over to other GPUs
  Spread spread;
  WorkspaceTable workspaces;
  MemorySpread memory_spread;  // ranges of memory; of no width where the file is missing
};

inline constexpr const char* kMemorySpreadFile = "memory/spread.json";  // in the data folder

enum class Trees : uint8_t { with, without };  // without: there is no corrector, as before the first training

// `device_files`: further devices from the user.
Result<Knowledge> load_knowledge(const std::vector<std::string>& device_files = {}, Trees trees = Trees::with);

}  // namespace forerun
