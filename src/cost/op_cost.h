// OpCost: what a cost model says about one op on one device. Every model under cost/ gives a vector of these.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/quantity.h"

namespace forerun {

enum class Bound : uint8_t { none, compute, memory, latency };  // none: no kernel
std::string_view name_of(Bound bound);

struct OpCost {
  Nanoseconds gpu;         // sum of its kernels' durations, without the gaps between them
  Nanoseconds overlapped;  // of that, beside other kernels of the same op (cuDNN's recurrent layers)
  int kernels = 0;
  bool measured = false;  // from measured evidence for this very op, not from a formula
  bool captured = false;  // part of a CUDA graph (cost/host/cuda_graph.h)
  Bound bound = Bound::none;
};

}  // namespace forerun
