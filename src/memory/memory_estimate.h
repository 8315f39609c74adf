// MemoryEstimate: how much memory a training iteration takes at its peak, and what for.
#pragma once

#include <array>
#include <cstdint>

#include "base/quantity.h"
#include "graph/graph.h"

namespace forerun {

// What a piece of memory is for.
enum class Use : uint8_t { parameter, buffer, state, input, gradient, activation, temporary, workspace };
inline constexpr size_t kUses = 8;
using BytesByUse = std::array<int64_t, kUses>;

struct MemoryEstimate {
  Bytes peak_allocated;
  Bytes peak_reserved;
  OpId peak_op;  // the op during which peak_allocated is reached; invalid where the roots alone are the peak

  // What is live at the peak; the parts add up to peak_allocated.
  Bytes parameters;
  Bytes buffers;
  Bytes optimizer_state;
  Bytes inputs;
  Bytes gradients;    // made in the backward phase and kept to the end of the iteration
  Bytes activations;  // made in the forward phase
  Bytes temporaries;  // everything else
  Bytes workspaces;   // cuBLAS
};

// What is live at the peak.
void set_parts(const BytesByUse& live, MemoryEstimate& estimate);

}  // namespace forerun
