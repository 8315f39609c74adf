#include "api/predicted_memory.h"

namespace forerun {
namespace {

// What a process takes of the GPU beside the allocator: measured on an H200 with PyTorch 2.11, 705 to 841 MiB.
constexpr Bytes kContext(int64_t{820} << 20);

constexpr Bytes kCublasHopper(int64_t{32} << 20);
constexpr Bytes kCublasBefore((int64_t{8} << 20) + (int64_t{128} << 10));

bool has_large_cublas_workspace(const Device& device) {
  return device.name.find("H100") != std::string::npos || device.name.find("H200") != std::string::npos;
}

}  // namespace

PredictedMemory predicted_memory(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces) {
  IterationReplayOptions options;
  options.cublas_workspace = has_large_cublas_workspace(device) ? kCublasHopper : kCublasBefore;
  options.temporaries.workspaces = &workspaces;
  options.temporaries.channels_last = run.setup.channels_last;
  if (device.sm_count > 0) options.temporaries.device.multiprocessors = device.sm_count;
  const IterationReplay unlimited = replay_iterations(run.graph, options);
  PredictedMemory memory{.estimate = unlimited.peak, .context = kContext};
  if (memory.estimate.peak_reserved + kContext <= device.memory) return memory;
  memory.fits = false;
  if (memory.estimate.peak_allocated + kContext > device.memory) return memory;
  options.capacity = device.memory.value - kContext.value;
  const IterationReplay limited = replay_iterations(run.graph, options);
  if (limited.out_of_memory) return memory;
  memory.estimate = limited.peak;
  memory.fits = true;
  return memory;
}

}  // namespace forerun
