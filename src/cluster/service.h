// GPU time: what a job's gang takes in all, as a key to sort by.
#pragma once

#include "cluster/job.h"

namespace forerun::cluster {

// In nanoseconds where that fits in 64 bits, saturating beyond (292 GPU years).
inline int64_t gpu_time(Time time, int32_t gpus) {
  int64_t product = 0;
  return __builtin_mul_overflow(time.value, static_cast<int64_t>(gpus), &product) ? kNever.value : product;
}

}  // namespace forerun::cluster
