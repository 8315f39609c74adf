// PredictionIntervals: between which multiples of a predicted iteration time eight of ten measured ones lie, data/cost/intervals.json.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"

namespace forerun {

// Where `predict` looks for it, below the data folder.
inline constexpr const char* kIntervalsFile = "cost/intervals.json";

struct RatioInterval {
  double low = 1;
  double high = 1;
};

struct PredictionIntervals {
  RatioInterval gpu_bound;
  RatioInterval host_bound;
  RatioInterval other_gpu;  // on GPUs that nothing was measured on, whatever bounds the run
};

Result<PredictionIntervals> load_prediction_intervals(const std::filesystem::path& file);
Status save_prediction_intervals(const PredictionIntervals& intervals, const std::filesystem::path& file);

// The range for a run. On another GPU the host is another one too: the wider of both ends counts.
RatioInterval interval_of(const PredictionIntervals& intervals, bool host_bound, bool measured_gpu);

// The range that holds eight of ten of these ratios of measured to predicted times, and 1.
RatioInterval range_of(std::vector<double> ratios);

}  // namespace forerun
