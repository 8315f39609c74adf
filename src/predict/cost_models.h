// CostModels: what every prediction draws on, read once from the data folder: devices, cost constants, host costs,
// workspaces.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cost/analytic/constants.h"
#include "cost/calibrated/calibrated_intervals.h"
#include "cost/generated/generated.h"
#include "cost/host/host.h"
#include "cost/hybrid/device_scale.h"
#include "cost/hybrid/hybrid.h"
#include "cost/hybrid/prediction_intervals.h"
#include "device/catalogue.h"
#include "memory/memory_intervals.h"
#include "memory/workspace_table.h"

namespace forerun {

class MachineCalibration;

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
  CompileConstants compile;                           // of models under torch.compile
  CalibratedIntervals calibrated;                     // ranges where a machine was calibrated, and where none was
  std::shared_ptr<const MachineCalibration> machine;  // that answers are for; null: none was calibrated
};

// Ranges of memory of a run that is trained so: those of compiled models are wider.
MemoryIntervals memory_intervals_of(const CostModels& cost_models, CompileMode mode);

// Of iterations of compiled models: where most of those lie that were measured on one GPU; on another also as far off as eager ones are
// there (`eager`).
RatioInterval compiled_interval(const CostModels& cost_models, CompileMode mode, bool host_bound, GpuDistance distance,
                                const RatioInterval& eager);

// How fast the host of a run is, in parts of the speed of the machine that the constants are for: by the machine's readings, by those
// taken beside the run, or 1.
double host_speed(const CostModels& cost_models, const TrainingRun& run);
// Whether readings say so.
bool host_is_calibrated(const CostModels& cost_models, const TrainingRun& run);

inline constexpr const char* kMemoryIntervalsFile = "memory/intervals.json";  // in the data folder

enum class Trees : uint8_t { with, without };  // without: there is no residual model, as before the first training

// `device_files`: further devices from the user.
Result<CostModels> load_cost_models(const std::vector<std::string>& device_files = {}, Trees trees = Trees::with);

// The same for answers to a user: with the machine.json that `machine` names (predict/machine_calibration.h), the one of the
// configuration folder where it is empty, or none where it is "none".
Result<CostModels> load_cost_models_for(const std::string& machine, const std::vector<std::string>& device_files = {});

// The GPU that is meant where nobody names one: that of the machine, else kDefaultGpu.
std::string usual_gpu(const CostModels& cost_models);
// The GPU of that name; where it is empty, the usual one.
Result<Device> asked_gpu(const std::string& name, const CostModels& cost_models);

// What an answer for the run on that device has to say of the machine's readings; empty where no machine was calibrated.
std::string calibration_told(const CostModels& cost_models, const Device& device, const TrainingRun& run);

// How far the GPU is from what was measured: beyond without trees, and where its watts hold the board back in a way nobody measured.
GpuDistance distance_to(const Device& device, const CostModels& cost_models, Precision precision);

// Of what predictions for the GPU that was measured, an H200, are made from (base/provenance.h): errors that were kept of them
// are stale once it changes.
Result<std::string> cost_models_fingerprint();

}  // namespace forerun
