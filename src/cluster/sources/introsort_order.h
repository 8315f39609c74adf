// The order in which an unstable introsort leaves rows with equal keys.
//
// Traces with a resolution of a second have many jobs of one time, and head-of-line policies depend on their order.
// Published figures for the Philly trace come from tools that sort with numpy's default, an introsort that is not stable.
// To be comparable to the last digit, this follows the same steps: quicksort around the median of first, middle and last
// element, the larger part left for later, parts of up to 16 elements by insertion, heapsort beyond twice the logarithm
// of the size in depth.
#pragma once

#include <cstdint>
#include <vector>

namespace forerun::cluster {

// The positions of the keys in ascending order.
std::vector<uint32_t> introsort_order(const std::vector<int64_t>& keys);

}  // namespace forerun::cluster
