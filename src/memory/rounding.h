// Rounding of sizes and counts, as allocators and kernels do it. Steps are positive.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace forerun {

constexpr int64_t divide_up(int64_t value, int64_t by) { return (value + by - 1) / by; }
constexpr int64_t round_up(int64_t value, int64_t step) { return divide_up(value, step) * step; }
// The largest power of two that is not above the value; 1 of what is below 1.
constexpr int64_t floor_power(int64_t value) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}

}  // namespace forerun
