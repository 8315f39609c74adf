// Host costs: how long the CPU is busy issuing each op, from data/host/default.json.
//
//   op        = cost of its class in its phase + cost of every kernel after the first
//   foreach   = cost of the class + cost of every tensor of the list
//   iteration = constant + cost of every parameter tensor (zero_grad, gradient bookkeeping)
//   loop      = what a library's loop does for every batch (data/host/loops.json)
// Python, autograd and dispatch overhead are all in the class's figure. `speed` scales everything.
// Left out: data loading, the drift of host speed within minutes.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cost/op_cost.h"
#include "derive/op_class.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun {

// Where `predict` looks for it, below the data folder.
inline constexpr const char* kHostFile = "host/default.json";

// How a calibration of the host (docs/records.md, host_us) scales all costs: those of a machine are
//   at_reference x product of (reading / reference) ^ weight
// of the constants. The weights add up to less than one since a reading tells the speed of its moment, which drifts.
struct ScaleReading {
  std::string kind;
  double reference_us = 1;
  double weight = 0;
};
struct HostScale {
  std::vector<ScaleReading> forward;
  std::vector<ScaleReading> backward;
  double at_reference = 1;
};

struct HostConstants {
  std::array<std::array<Nanoseconds, kOpClassCount>, 3> op;  // by phase and class: autograd makes forward ops dearer
  Nanoseconds host_op;                                       // an op on tensors in host memory
  Nanoseconds mark;                                          // profiler marks
  Nanoseconds further_kernel;
  Nanoseconds foreach_tensor;
  Nanoseconds parameter;
  Nanoseconds iteration;
  HostScale scale;
  std::optional<HostScale> cpu_scale;  // the same by readings on tensors of the host, where no GPU was there to read on

  [[nodiscard]] Nanoseconds& of(Phase phase, OpClass cls) {
    return op[static_cast<size_t>(phase)][static_cast<size_t>(cls)];
  }
  [[nodiscard]] Nanoseconds of(Phase phase, OpClass cls) const {
    return op[static_cast<size_t>(phase)][static_cast<size_t>(cls)];
  }
};

// What a training loop does by itself for a micro-batch, beside the ops it issues, from data/host/loops.json.
struct LoopCosts {
  std::array<Nanoseconds, kTrainingLoops> batch{};
};
inline constexpr const char* kLoopsFile = "host/loops.json";
Result<LoopCosts> load_loop_costs(const std::filesystem::path& file);

Result<HostConstants> load_host_constants(const std::filesystem::path& file);

// A scale by readings on tensors of the host (`python -m forerun.calibrate --host-only`), from data/host/on_cpu.json.
inline constexpr const char* kHostOnCpuFile = "host/on_cpu.json";
Result<HostScale> load_host_scale(const std::filesystem::path& file);
Status save_host_constants(const HostConstants& constants, const std::filesystem::path& file);

// What the costs are multiplied by on a calibrated machine; nothing where a reading that the scale asks for is missing.
std::optional<double> host_slowness(const HostScale& scale, const HostCalibration& calibration);

// How fast a host is, in parts of the speed of the machine that the constants are for; 1 without a whole calibration.
double host_speed(const HostConstants& constants, const HostCalibration& calibration);

struct HostCosts {
  std::vector<Nanoseconds> ops;  // in the graph's order
  Nanoseconds per_iteration;     // besides the ops
  Nanoseconds loop;              // what the training loop itself does once they are issued (loop_cost)
  [[nodiscard]] Nanoseconds total() const;
};

// What the host has to do in an iteration, by the constant that it costs.
struct HostCounts {
  std::array<std::array<int64_t, kOpClassCount>, 3> op = {};  // by phase and class
  int64_t host_ops = 0;
  int64_t marks = 0;
  int64_t further_kernels = 0;
  int64_t foreach_tensors = 0;
  int64_t parameters = 0;
};
// `kernels` by op.
HostCounts host_counts(const Graph& graph, std::span<const uint32_t> kernels);
// What it takes together: the same as the total of host_costs at speed 1.
Nanoseconds host_cost(const HostCounts& counts, const HostConstants& constants);

// `costs` gives the number of kernels of each op. Parameter tensors are counted by the accumulations of their gradients.
HostCosts host_costs(const Graph& graph, std::span<const OpCost> costs, const HostConstants& constants,
                     double speed = 1.0);

// What the loop itself does in an iteration.
Nanoseconds loop_cost(const TrainingSetup& setup, const LoopCosts& costs, double speed = 1.0);

}  // namespace forerun
