// CostModels: what every prediction draws on, read once from the data folder: devices, cost constants, host costs,
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
#include "cost/hybrid/prediction_intervals.h"
#include "device/catalogue.h"
#include "memory/memory_intervals.h"
#include "memory/workspace_table.h"

namespace forerun {

struct CostModels {
  DeviceCatalogue devices;
  AnalyticConstants analytic;
  HostConstants host;
  std::optional<hybrid::ResidualModel> residual_model;  // missing: GPU times are those of the analytic model
  hybrid::DeviceScale scale;                            // how its corrections carry over to other GPUs
  PredictionIntervals intervals;
  WorkspaceTable workspaces;
  MemoryIntervals memory_intervals;  // ranges of memory; of no width where the file is missing
  LoopCosts loops;
};

inline constexpr const char* kMemoryIntervalsFile = "memory/intervals.json";  // in the data folder

enum class Trees : uint8_t { with, without };  // without: there is no residual model, as before the first training

// `device_files`: further devices from the user.
Result<CostModels> load_cost_models(const std::vector<std::string>& device_files = {}, Trees trees = Trees::with);

// How far the GPU is from what was measured: beyond without trees, and where its watts hold the board back in a way nobody measured.
GpuDistance distance_to(const Device& device, const CostModels& cost_models, Precision precision);

// Of what predictions for the GPU that was measured, an H200, are made from (base/provenance.h): errors that were kept of them
// are stale once it changes.
Result<std::string> cost_models_fingerprint();

}  // namespace forerun
