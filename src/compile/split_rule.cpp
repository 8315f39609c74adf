#include "compile/split_rule.h"

#include <algorithm>
#include <cstdlib>

namespace forerun::compile {
namespace {

constexpr int64_t kLeastEach = 32;  // elements a thread
constexpr int64_t kMostEach = 512;
constexpr int64_t kThreads = 2048;  // of a multiprocessor
constexpr int64_t kBlock = 256;     // threads
constexpr int64_t kShort = 8192;    // an inner reduction of no more is not cut
constexpr int64_t kLeast = kLeastEach * kMultiprocessors * kThreads;
constexpr int64_t kMost = kMostEach * kMultiprocessors * kThreads;

int64_t rounded_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

// The divisor of `value` nearest to `wanted`; of two as near, the smaller.
int64_t nearest_divisor(int64_t value, int64_t wanted) {
  int64_t best = 1;
  for (int64_t low = 1; low * low <= value; ++low) {
    if (value % low != 0) continue;
    for (const int64_t divisor : {low, value / low}) {
      const int64_t nearer = std::abs(divisor - wanted) - std::abs(best - wanted);
      if (nearer < 0 || (nearer == 0 && divisor < best)) best = divisor;
    }
  }
  return best;
}

// Elements a thread: `wanted`, or a divisor that is less than `near` away.
int64_t even(int64_t reduced, int64_t wanted, int64_t near, int64_t least) {
  const int64_t closest = nearest_divisor(reduced, wanted);
  return std::abs(closest - wanted) < near ? std::max(closest, least) : wanted;
}

int64_t inner_split(int64_t results, int64_t reduced) {
  if (results >= 2 * kMultiprocessors || reduced <= kShort) return 1;
  int64_t each = kLeastEach;
  if (reduced * results > kLeast) {
    const int64_t blocks = rounded_up(kMultiprocessors * kThreads / (2 * kBlock), results);
    each = reduced * results < kMost ? even(reduced, rounded_up(reduced, kBlock * blocks), 30, kLeastEach)
                                     : even(reduced, kMostEach, 50, 1);
  }
  return rounded_up(reduced, each * kBlock);
}

int64_t outer_split(int64_t results, int64_t reduced) {
  constexpr int64_t kRows = 4;  // that a thread takes at a time
  if (reduced <= kLeastEach || results >= kMultiprocessors * 2 * 32) return 1;
  int64_t each = kLeastEach;
  if (reduced * results >= kLeast) {
    const int64_t blocks = rounded_up(kMultiprocessors * kThreads / kBlock, rounded_up(results, 128));
    each = reduced * results < kMost ? even(reduced, rounded_up(reduced, kRows * blocks), 20, kLeastEach)
                                     : even(reduced, kMostEach, 50, 1);
  }
  return rounded_up(reduced, kRows * each);
}

}  // namespace

int64_t split_of(const Reduction& reduction) {
  if (reduction.inner || reduction.results == 1) return inner_split(reduction.results, reduction.reduced);
  return outer_split(reduction.results, reduction.reduced);
}

}  // namespace forerun::compile
