// Sizes to which Inductor pads products of matrices of 16 bits (torch/_inductor/fx_passes/pad_mm.py of PyTorch 2.11).
#pragma once

#include <cstdint>

namespace forerun::compile {

inline constexpr int64_t kAligned = 8;  // elements of 16 bits

constexpr int64_t padded_size(int64_t size) { return size == 1 ? 1 : (size + kAligned - 1) / kAligned * kAligned; }

// Whether a product [m, k] x [k, n] is padded: some size is odd, and arithmetic bounds it on a GPU with half of that many operations a
// byte as an H200 has by Triton's own count.
constexpr bool is_padded(int64_t m, int64_t k, int64_t n) {
  constexpr double kBalance = 0.5 * 1070e12 / 4916e9;
  if (padded_size(m) == m && padded_size(k) == k && padded_size(n) == n) return false;
  const auto rows = static_cast<double>(m);
  const auto inner = static_cast<double>(k);
  const auto columns = static_cast<double>(n);
  return rows * inner * columns > kBalance * (rows * inner + inner * columns + rows * columns);
}

}  // namespace forerun::compile
