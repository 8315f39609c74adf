// Spread: between which multiples of a predicted iteration time eight of ten measured ones lie, data/cost/spread.json.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"

namespace forerun {

// Where `predict` looks for it, below the data folder.
inline constexpr const char* kSpreadFile = "cost/spread.json";

struct SpreadRange {
  double low = 1;
  double high = 1;
};

struct Spread {
  SpreadRange gpu_bound;
  SpreadRange host_bound;
  SpreadRange other_gpu;  // on GPUs that nothing was measured on, whatever bounds the run
};

Result<Spread> load_spread(const std::filesystem::path& file);
Status save_spread(const Spread& spread, const std::filesystem::path& file);

// The range for a run. On another GPU the host is another one too: the wider of both ends counts.
SpreadRange spread_of(const Spread& spread, bool host_bound, bool measured_gpu);

// The range that holds eight of ten of these ratios of measured to predicted times, and 1.
SpreadRange range_of(std::vector<double> ratios);

}  // namespace forerun
