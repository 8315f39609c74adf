// What it takes the host to launch kernels that were captured as a CUDA graph: 10 us, and a tenth of a microsecond a kernel.
#pragma once

#include <cstdint>

#include "base/quantity.h"

namespace forerun {

constexpr Nanoseconds cuda_graph_launch(int64_t kernels) { return Nanoseconds(10'000 + 100 * kernels); }

}  // namespace forerun
