// Spread: between which multiples of a predicted iteration time eight of ten measured ones lie, data/cost/spread.json.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace forerun {

struct SpreadRange {
  double low = 1;
  double high = 1;
};

struct Spread {
  SpreadRange gpu_bound;
  SpreadRange host_bound;
  double other_gpu = 1;  // how many times as wide, in logarithms, on GPUs that nothing was measured on
};

Result<Spread> load_spread(const std::filesystem::path& file);

// The range for a run.
SpreadRange spread_of(const Spread& spread, bool host_bound, bool measured_gpu);

}  // namespace forerun
