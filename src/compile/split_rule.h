// SplitRule: whether Inductor runs a reduction in several kernels, and how it cuts it.
//
// A reduction with few results and much to reduce would leave most of the GPU idle, so blocks reduce pieces of it first and
// further kernels add those up. The rule of torch/_inductor/choices.py (reduction_split_factor) and ir.py (num_splits) of
// PyTorch 2.13, for a GPU with 2048 threads a multiprocessor. Left out: cooperative reductions, which are off by default.
#pragma once

#include <cstdint>

namespace forerun::compile {

inline constexpr int64_t kMultiprocessors = 132;  // of an H100 or H200, for which the rule was held to measured kernels

struct Reduction {
  int64_t results = 1;
  int64_t reduced = 1;
  bool inner = true;  // over elements that lie together
};

// Rows of so many elements and fewer are reduced without a loop: torch/_inductor/choices.py of PyTorch 2.13.
inline constexpr int64_t kLongestPersistentRow = 1024;
inline constexpr int64_t kLongestPersistentColumn = 64;

// Pieces that each result is reduced in first; 1: it is not cut.
int64_t split_of(const Reduction& reduction);

}  // namespace forerun::compile
