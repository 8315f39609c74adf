// Kernels that were captured as a CUDA graph: the host takes 10 us to launch them, and a tenth of a microsecond a kernel; on the GPU each
// begins 0.2 us behind the one before it (the iterations of twelve compiled models on an H200, less their kernels).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/quantity.h"

namespace forerun {

constexpr Nanoseconds cuda_graph_launch(int64_t kernels) { return Nanoseconds(10'000 + 100 * kernels); }

constexpr Nanoseconds cuda_graph_gap(Nanoseconds launched_one_by_one) {
  return std::min(launched_one_by_one, Nanoseconds(200));
}

}  // namespace forerun
