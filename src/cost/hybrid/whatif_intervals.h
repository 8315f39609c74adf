// WhatIfIntervals: between which multiples of a time that was predicted from a trace eight of ten measured ones lie,
// data/cost/whatif_intervals.json. What a model alone predicts has the range of `forerun predict` (prediction_intervals.h).
#pragma once

#include <filesystem>

#include "base/result.h"
#include "cost/hybrid/prediction_intervals.h"

namespace forerun {

// Where `whatif` looks for it, below the data folder.
inline constexpr const char* kWhatIfIntervalsFile = "cost/whatif_intervals.json";

struct WhatIfIntervals {
  RatioInterval gpu_bound;  // where all of the GPU's work changes; less where less does
  RatioInterval host_bound;
  RatioInterval elsewhere;  // where neither decides: communication, loading
  double noise = 0;         // of measuring, added to either side of gpu_bound
};

Result<WhatIfIntervals> load_whatif_intervals(const std::filesystem::path& file);

}  // namespace forerun
