// PredictionIntervals: between which multiples of a predicted iteration time eight of ten measured ones lie, data/cost/intervals.json.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "graph/training_run.h"

namespace forerun {

// Where `predict` looks for it, below the data folder.
inline constexpr const char* kIntervalsFile = "cost/intervals.json";

struct RatioInterval {
  double low = 1;
  double high = 1;
};

// How far a GPU is from what was measured. near: of the measured GPU's architecture, or in fp32 on one that others published op
// latencies of. far: other NVIDIA GPUs from Volta on, other precisions. beyond: later architectures, other vendors, GPUs whose power or
// architecture is not known.
enum class GpuDistance : uint8_t { none, near, far, beyond };
inline constexpr std::array kOtherGpus = {GpuDistance::near, GpuDistance::far, GpuDistance::beyond};
std::string_view name_of(GpuDistance distance);
GpuDistance gpu_distance(const Device& device, const Device& measured, Precision precision);

struct PredictionIntervals {
  RatioInterval gpu_bound;
  RatioInterval host_bound;
  std::array<RatioInterval, kOtherGpus.size()> other_gpu = {};  // by distance from near on, whatever bounds the run

  [[nodiscard]] RatioInterval& other(GpuDistance distance) { return other_gpu[static_cast<size_t>(distance) - 1]; }
  [[nodiscard]] const RatioInterval& other(GpuDistance distance) const {
    return other_gpu[static_cast<size_t>(distance) - 1];
  }
};

Result<PredictionIntervals> load_prediction_intervals(const std::filesystem::path& file);
Status save_prediction_intervals(const PredictionIntervals& intervals, const std::filesystem::path& file);

// The range for a run. On another GPU the host is another one too: the wider of both ends counts.
RatioInterval interval_of(const PredictionIntervals& intervals, bool host_bound, GpuDistance distance);

// The range that holds eight of ten of these ratios of measured to predicted times, and 1.
RatioInterval range_of(std::vector<double> ratios);

}  // namespace forerun
