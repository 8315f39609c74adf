// CalibratedIntervals: between which multiples of a predicted iteration time eight of ten measured ones lie, by whether the machine was
// calibrated: data/cost/calibrated.json, which `forerun eval --suite calibration --keep` writes.
//
//   {"format": "calibrated/1", "gpu": [{"readings": 900, "low": 0.85, "high": 1.2}, {"readings": 6000, ...}],
//    "calibrated_host": {"low": 0.84, "high": 1.17}, "default_host": {"low": 0.7, "high": 1.35}}
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "cost/hybrid/prediction_intervals.h"

namespace forerun {

// Where `predict` looks for it, below the data folder.
inline constexpr const char* kCalibratedIntervalsFile = "cost/calibrated.json";

struct CalibratedIntervals {
  struct OfReadings {
    int64_t readings = 0;
    RatioInterval range;
  };
  std::vector<OfReadings>
      gpu;  // of iterations that the GPU bounds, by how many of its ops were read; more readings follow fewer
  std::optional<RatioInterval>
      calibrated_host;  // of iterations that the host bounds, where readings of the host were taken
  std::optional<RatioInterval> default_host;  // where none were

  // The range of the most readings that are no more than these; nothing where even the least are more.
  [[nodiscard]] std::optional<RatioInterval> gpu_with(size_t readings) const;
};

Result<CalibratedIntervals> load_calibrated_intervals(const std::filesystem::path& file);
Status save_calibrated_intervals(const CalibratedIntervals& intervals, const std::filesystem::path& file);

}  // namespace forerun
