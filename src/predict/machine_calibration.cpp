#include "predict/machine_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "cost/analytic/analytic.h"
#include "derive/work.h"
#include "predict/cost_models.h"
#include "predict/predict.h"

namespace forerun {
namespace {

// Shares of the peak that the longest products and copies of well-known GPUs reach (data/cost/devices.json, data/cost/README.md).
constexpr double kProductShare = 0.8;
constexpr double kMemoryShare = 0.88;
constexpr double kLongUs = 200;  // ops of at least so long reach what the GPU can do
constexpr double kUsualGapUs = 1.5;

std::map<Precision, std::vector<const OpReading*>> by_precision(const std::vector<OpReading>& ops) {
  std::map<Precision, std::vector<const OpReading*>> groups;
  for (const OpReading& op : ops) groups[op.precision].push_back(&op);
  return groups;
}

TrainingSetup setup_in(Precision precision) {
  TrainingSetup setup;
  setup.precision = precision;
  return setup;
}

std::vector<ReadOp> read_ops(const Machine& machine, const Device& device, const CostModels& cost_models) {
  std::vector<ReadOp> found;
  for (const auto& [precision, readings] : by_precision(machine.ops)) {
    const Graph graph = graph_of(readings);
    const TrainingSetup setup = setup_in(precision);
    const std::vector<OpCost> costs = default_gpu_costs(graph, setup, device, cost_models);
    const LayoutTracker layouts(graph, false);
    for (size_t i = 0; i < readings.size(); ++i) {
      const Op& op = graph.ops()[i];
      ReadOp read{.us = readings[i]->us,
                  .default_us = static_cast<double>(costs[i].gpu.value) / 1e3,
                  .spread = readings[i]->spread,
                  .within = readings[i]->within};
      read.rows = hybrid::featurize(graph, op, work_of(graph, op), layouts, device, setup, cost_models.analytic);
      for (const hybrid::FeatureRow& row : read.rows) read.names.emplace_back(row.op);
      if (!read.rows.empty()) found.push_back(std::move(read));
    }
  }
  return found;
}

}  // namespace

MachineCalibration::MachineCalibration(Machine machine, std::string gpu, std::string file)
    : machine_(std::move(machine)),
      gpu_(std::move(gpu)),
      file_(std::move(file)),
      host_(median_of(machine_.host_cuda)),
      cpu_(median_of(machine_.host_cpu)) {}

std::optional<double> MachineCalibration::host_slowness(const HostConstants& constants) const {
  if (!host_.empty()) return forerun::host_slowness(constants.scale, host_);
  if (cpu_.empty() || !constants.cpu_scale) return std::nullopt;
  return forerun::host_slowness(*constants.cpu_scale, cpu_);
}

const GpuCorrection& MachineCalibration::correction(const CostModels& cost_models) const {
  std::call_once(once_, [&] {
    const Result<Device> device = cost_models.devices.find(gpu_);
    correction_ = device ? GpuCorrection::fitted(read_ops(machine_, *device, cost_models)) : GpuCorrection();
  });
  return *correction_;
}

void MachineCalibration::prepare(const CostModels& cost_models) const {
  const Result<Device> device = cost_models.devices.find(gpu_);
  if (device && corrects(*device, cost_models)) (void)correction(cost_models);
}

bool MachineCalibration::corrects(const Device& device, const CostModels& cost_models) const {
  return reads(device) && !(cost_models.residual_model && cost_models.residual_model->gpu == device.name);
}

std::string MachineCalibration::assumption(const Device& device, const CostModels& cost_models,
                                           bool host_scaled) const {
  const std::string day = machine_.card.date.empty() ? "an unknown day" : machine_.card.date;
  const std::string host = !host_scaled    ? "no host reading that applies"
                           : host_.empty() ? "the host without a GPU, which tells less of launches"
                                           : "the host";
  if (reads(device) && !corrects(device, cost_models)) {
    return fmt::format("calibrated on {} by {}: {}; times of this GPU's ops rest on more than its {}", day, file_, host,
                       machine_.ops.size());
  }
  if (reads(device)) {
    return fmt::format("calibrated on {} by {}: {} ops of this GPU, and {}", day, file_, machine_.ops.size(), host);
  }
  if (gpu_.empty()) return fmt::format("calibrated on {} by {}: {}, no GPU", day, file_, host);
  return fmt::format("calibrated on {} by {}: {} alone, since its GPU is the {}", day, file_, host, gpu_);
}

std::string configured_machine() {
  const char* folder = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path path;
  if (folder != nullptr && *folder != '\0') {
    path = folder;
  } else if (home != nullptr && *home != '\0') {
    path = std::filesystem::path(home) / ".config";
  } else {
    return "";
  }
  path = path / "forerun" / "machine.json";
  std::error_code error;
  return std::filesystem::exists(path, error) ? path.string() : "";
}

Status use_machine(const std::string& word, CostModels& cost_models) {
  if (word == kNoMachine) return {};
  const std::string file = word.empty() ? configured_machine() : word;
  if (file.empty()) return {};
  Result<Machine> machine = read_machine(file);
  if (!machine) {
    if (!word.empty()) return machine.error();
    Error error = machine.error();
    error.remedy += ", delete it, or give --machine none";
    return error;
  }
  std::string gpu;
  if (machine->device) {
    Result<Device> known = cost_models.devices.find(machine->device->name);
    if (!known) {
      known = described_device(*machine, file);
      if (!known) return known.error();
      if (Status added = cost_models.devices.add(*known); !added.ok()) return added;
    }
    gpu = known->name;
  }
  cost_models.machine = std::make_shared<const MachineCalibration>(std::move(*machine), std::move(gpu), file);
  return {};
}

Result<Device> described_device(const Machine& machine, const std::string& where) {
  const DeviceFacts& facts = *machine.device;
  Device device;
  device.name = facts.name;
  device.vendor = "NVIDIA";
  device.sm_count = facts.sm_count;
  device.clock_mhz = facts.clock_mhz;
  device.memory = Bytes(static_cast<int64_t>(facts.memory_mib * 1048576));
  device.board_memory = device.memory;
  device.compute_capability = facts.compute_capability;
  device.l2 = Bytes(static_cast<int64_t>(facts.l2_kib * 1024));
  device.power_w = facts.power_w;
  device.blas_workspace = Bytes(facts.compute_capability >= kHopper ? int64_t{32} << 20 : int64_t{8519680});
  device.launch_gap = nanoseconds_from_us(kUsualGapUs);
  device.pcie_bandwidth = 32e9;
  device.file = where;
  std::map<Unit, double> rates;
  for (const auto& [precision, readings] : by_precision(machine.ops)) {
    const Graph graph = graph_of(readings);
    for (size_t i = 0; i < readings.size(); ++i) {
      const OpWork work = work_of(graph, graph.ops()[i]);
      if (readings[i]->us < kLongUs) continue;
      const double seconds = readings[i]->us * 1e-6;
      if (work.cls == OpClass::gemm) {
        double& rate = rates[product_unit(work, precision)];
        rate = std::max(rate, work.flops.value / seconds / kProductShare);
      } else if (work.cls == OpClass::elementwise) {
        const auto moved = static_cast<double>(work.read.value + work.written.value);
        device.memory_bandwidth = std::max(device.memory_bandwidth, moved / seconds / kMemoryShare);
      }
    }
  }
  device.peak.fp32 = std::max(rates[Unit::fp32], rates[Unit::fp32_matrix]);  // products ask for the latter
  device.peak.tf32_tensor = rates[Unit::tf32_tensor];
  device.peak.bf16_tensor = rates[Unit::bf16_tensor];
  device.peak.fp16_tensor = std::max(rates[Unit::fp16_tensor], device.peak.bf16_tensor);
  device.peak.fp64 = device.peak.fp32 / 32;
  device.peak.fp16 = device.peak.fp32;
  if (device.sm_count < 1 || device.memory.value < 1 || device.peak.fp32 <= 0 || device.memory_bandwidth <= 0) {
    return Error{fmt::format("the catalogue has no {}, and the readings do not tell enough of it", facts.name), where,
                 "calibrate for some minutes more, or describe the GPU with --device-file"};
  }
  if (device.clock_mhz <= 0) device.clock_mhz = 1500;
  return device;
}

}  // namespace forerun
