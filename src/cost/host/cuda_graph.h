// Kernels that were captured as a CUDA graph: the host takes 10 us to launch them, and a tenth of a microsecond a kernel; on the GPU each
// begins 0.2 us behind the one before it (the iterations of twelve compiled models on an H200, less their kernels).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/quantity.h"

namespace forerun {

constexpr Nanoseconds cuda_graph_launch(int64_t kernels) { return Nanoseconds(10'000 + 100 * kernels); }

// Behind a kernel; `launched`: behind one that is launched by itself.
constexpr Nanoseconds kernel_gap(bool captured, Nanoseconds launched) {
  return captured ? std::min(launched, Nanoseconds(200)) : launched;
}

}  // namespace forerun
