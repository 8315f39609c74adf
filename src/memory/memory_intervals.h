// MemoryIntervals: between which multiples of a predicted peak eight of ten measured ones lie, data/memory/intervals.json.
//
// `forerun eval --suite memory --write-intervals FILE` makes the file, from the ratio of measured to predicted peaks of all
// measured runs: the 10 % and 90 % quantiles, widened where need be to hold 1.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun {

struct RatioRange {
  double low = 1;
  double high = 1;
};

struct MemoryIntervals {
  RatioRange requested, allocated, reserved;
  RatioRange driver;  // the allocator's segments and the CUDA context
  int64_t runs = 0;   // that it was made from; 0: nothing is known
};

Result<MemoryIntervals> load_memory_intervals(const std::filesystem::path& file);

// The range of eight of ten ratios; both ends lie on the side of 1 that they are named after.
RatioRange ratio_range(std::vector<double> ratios);

// The file's text.
std::string to_json(const MemoryIntervals& intervals, const std::string& made_from);

}  // namespace forerun
