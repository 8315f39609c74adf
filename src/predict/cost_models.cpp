#include "predict/cost_models.h"

#include <algorithm>

#include "base/data_dir.h"
#include "base/parallel.h"
#include "base/provenance.h"
#include "cost/hybrid/hybrid_file.h"
#include "predict/machine_calibration.h"
#include "predict/predict.h"

namespace forerun {
namespace {

Result<std::optional<hybrid::ResidualModel>> load_trees(const std::filesystem::path& file, Trees trees) {
  std::optional<hybrid::ResidualModel> none;
  if (trees == Trees::without || !std::filesystem::exists(file)) return none;
  Result<hybrid::ResidualModel> loaded = hybrid::load_residual_model(file);
  if (!loaded) return loaded.error();
  return std::optional(std::move(*loaded));
}

}  // namespace

Result<CostModels> load_cost_models(const std::vector<std::string>& device_files, Trees trees) {
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return folder.error();
  // What takes longest, side by side.
  Result<DeviceCatalogue> devices = Error{"was not read", "", ""};
  Result<WorkspaceTable> workspaces = Error{"was not read", "", ""};
  Result<std::optional<hybrid::ResidualModel>> residual_model = Error{"was not read", "", ""};
  parallel_for(3, 2, [&](size_t part) {
    if (part == 0) devices = load_devices(*folder / "devices");
    if (part == 1) residual_model = load_trees(*folder / hybrid::kHybridFile, trees);
    if (part == 2) workspaces = WorkspaceTable::load(*folder / "memory" / "workspaces.json");
  });
  if (!devices) return devices.error();
  if (!workspaces) return workspaces.error();
  if (!residual_model) return residual_model.error();
  for (const std::string& file : device_files) {
    if (const Status status = devices->add_file(file); !status.ok()) return status.error();
  }
  Result<AnalyticConstants> analytic = load_analytic_constants(*folder / "cost" / "analytic.json");
  if (!analytic) return analytic.error();
  Result<HostConstants> host = load_host_constants(*folder / kHostFile);
  if (!host) return host.error();
  if (const std::filesystem::path file = *folder / kHostOnCpuFile; std::filesystem::exists(file)) {
    Result<HostScale> scale = load_host_scale(file);
    if (!scale) return scale.error();
    host->cpu_scale = std::move(*scale);
  }
  const Result<LoopCosts> loops = load_loop_costs(*folder / kLoopsFile);
  if (!loops) return loops.error();
  const Result<CompileConstants> compile = load_compile_constants(*folder / kCompileFile);
  if (!compile) return compile.error();
  Result<hybrid::DeviceScale> scale = hybrid::load_device_scale(*folder / hybrid::kDeviceScaleFile);
  if (!scale) return scale.error();
  scale->set_boards(*devices);
  const Result<PredictionIntervals> intervals = load_prediction_intervals(*folder / kIntervalsFile);
  if (!intervals) return intervals.error();
  MemoryIntervals memory_intervals;
  if (const std::filesystem::path file = *folder / kMemoryIntervalsFile; std::filesystem::exists(file)) {
    const Result<MemoryIntervals> loaded = load_memory_intervals(file);
    if (!loaded) return loaded.error();
    memory_intervals = *loaded;
  }
  CalibratedIntervals calibrated;
  if (const std::filesystem::path file = *folder / kCalibratedIntervalsFile; std::filesystem::exists(file)) {
    Result<CalibratedIntervals> loaded = load_calibrated_intervals(file);
    if (!loaded) return loaded.error();
    calibrated = std::move(*loaded);
  }
  return CostModels{std::move(*devices),
                    std::move(*analytic),
                    *host,
                    std::move(*residual_model),
                    std::move(*scale),
                    *intervals,
                    std::move(*workspaces),
                    memory_intervals,
                    *loops,
                    *compile,
                    std::move(calibrated),
                    nullptr};
}

Result<CostModels> load_cost_models_for(const std::string& machine, const std::vector<std::string>& device_files) {
  Result<CostModels> cost_models = load_cost_models(device_files);
  if (!cost_models) return cost_models;
  if (const Status status = use_machine(machine, *cost_models); !status.ok()) return status.error();
  return cost_models;
}

MemoryIntervals memory_intervals_of(const CostModels& cost_models, CompileMode mode) {
  MemoryIntervals intervals = cost_models.memory_intervals;
  if (mode == CompileMode::none) return intervals;
  const CompileRange compiled =
      range_in(mode, launches_graphs(mode) ? cost_models.compile.captured_allocated : cost_models.compile.allocated);
  for (RatioRange* range : {&intervals.requested, &intervals.allocated, &intervals.reserved, &intervals.driver}) {
    range->low = std::min(range->low, compiled.low);
    range->high = std::max(range->high, compiled.high);
  }
  return intervals;
}

RatioInterval compiled_interval(const CostModels& cost_models, CompileMode mode, bool host_bound, GpuDistance distance,
                                const RatioInterval& eager) {
  const CompileRange range =
      range_in(mode, host_bound ? cost_models.compile.host_bound : cost_models.compile.iteration);
  if (distance == GpuDistance::none) return {range.low, range.high};
  return {range.low * eager.low, range.high * eager.high};
}

std::string usual_gpu(const CostModels& cost_models) {
  const bool named = cost_models.machine != nullptr && !cost_models.machine->gpu().empty();
  return named ? cost_models.machine->gpu() : std::string(kDefaultGpu);
}

Result<Device> asked_gpu(const std::string& name, const CostModels& cost_models) {
  return cost_models.devices.find(name.empty() ? usual_gpu(cost_models) : name);
}

std::string calibration_told(const CostModels& cost_models, const Device& device, const TrainingRun& run) {
  if (cost_models.machine == nullptr) return "";
  return cost_models.machine->assumption(device, cost_models, host_is_calibrated(cost_models, run));
}

namespace {

std::optional<double> slowness_of(const CostModels& cost_models, const TrainingRun& run) {
  if (cost_models.machine != nullptr) {
    if (const auto slowness = cost_models.machine->host_slowness(cost_models.host)) return slowness;
  }
  return host_slowness(cost_models.host.scale, run.environment.calibration);
}

}  // namespace

double host_speed(const CostModels& cost_models, const TrainingRun& run) {
  return 1 / slowness_of(cost_models, run).value_or(1);
}

bool host_is_calibrated(const CostModels& cost_models, const TrainingRun& run) {
  return slowness_of(cost_models, run).has_value();
}

Result<std::string> cost_models_fingerprint() {
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return folder.error();
  const auto file = [&](const char* name) { return *folder / name; };
  return fingerprint({file("cost/analytic.json"), file(hybrid::kHybridFile), file(kHostFile),
                      file("memory/workspaces.json"), file("memory/convolutions.bin")});
}

GpuDistance distance_to(const Device& device, const CostModels& cost_models, Precision precision) {
  if (!cost_models.residual_model) return GpuDistance::beyond;
  const auto measured = cost_models.devices.find(cost_models.residual_model->gpu);
  if (!measured) return GpuDistance::beyond;
  const GpuDistance distance = gpu_distance(device, *measured, precision);
  constexpr double kHeldBack = 0.8;
  const bool held_back =
      cost_models.scale.sustained(device) < kHeldBack;  // by its watts, and by how much nobody measured
  return distance == GpuDistance::far && held_back ? GpuDistance::beyond : distance;
}

}  // namespace forerun
