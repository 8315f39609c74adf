// MemoryAnswer: what is said of a run's memory beside the peaks: ranges, the moment of the peak and what lives then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memory/data_parallel.h"
#include "memory/memory_estimate.h"
#include "memory/memory_log.h"

namespace forerun {

// Eight of ten measured runs lie between low and high.
struct MemoryRange {
  Bytes low, expected, high;
};

struct PeakMoment {
  std::string op;      // "aten.addmm.default"; empty: outside the ops
  std::string module;  // of its forward op; empty: outside any
  std::string phase;
  int iteration = 0;  // the first is 0
};

// Whether a run fits in the GPU's memory: surely (the whole range does), perhaps (its ends differ), or not.
enum class FitVerdict : uint8_t { fits, may_not_fit, does_not_fit };
std::string_view name_of(FitVerdict verdict);  // "may_not_fit"

struct MemoryAnswer {
  FitVerdict verdict = FitVerdict::fits;
  bool at_least = false;  // it does not fit as expected: reserved and driver are lower bounds
  MemoryRange requested, allocated, reserved;
  MemoryRange driver;   // reserved and the CUDA context
  Bytes fragmentation;  // peak reserved less peak allocated
  Bytes buckets;        // of the peak's buffers: DDP's gradient buckets
  Bytes gathered;       // of its activations, temporaries and gradients: what FSDP gathers and reduces
  int64_t retries = 0;  // how often the allocator gave unused segments back to go on
  PeakMoment peak;
  std::vector<LiveShare> live;  // at the peak, the largest first; at most ten
  std::string allocator;        // PYTORCH_CUDA_ALLOC_CONF, as given
  DataParallel parallel;
};

}  // namespace forerun
