// Mean, median and quantiles of measured values.
//
// `quantile` is the definition to use: linear between the two nearest values, as numpy's default, so that the median of
// an even number of values is the mean of the middle two. The others pick a value that was measured: `upper_median`
// where times stay whole nanoseconds or a table has always shown it, `quantile_nearest` and `quantile_lower` where
// published figures were made with them. Functions named `sorted_` want values in ascending order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "base/check.h"

namespace forerun {

// Adds in the order of the values; the mean of none is 0.
inline double mean(std::span<const double> values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Where a quantile lies among sorted values: 0.5 of four values gives 1.5.
inline double quantile_place(size_t count, double share) {
  CHECK(count > 0 && share >= 0 && share <= 1, "a quantile needs values, and a share from 0 to 1");
  return share * static_cast<double>(count - 1);
}

inline double sorted_quantile(const std::vector<double>& sorted, double share) {
  const double place = quantile_place(sorted.size(), share);
  const auto below = static_cast<size_t>(place);
  if (below + 1 >= sorted.size()) return sorted[below];
  return sorted[below] + (sorted[below + 1] - sorted[below]) * (place - static_cast<double>(below));
}

// Reorders the values, in time that grows with their number alone.
inline double quantile_in_place(std::vector<double>& values, double share) {
  const double place = quantile_place(values.size(), share);
  const auto below = static_cast<size_t>(place);
  const auto low = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), low, values.end());
  if (low + 1 == values.end()) return *low;
  return *low + (*std::min_element(low + 1, values.end()) - *low) * (place - static_cast<double>(below));
}

inline double quantile(std::vector<double> values, double share) { return quantile_in_place(values, share); }
inline double median(std::vector<double> values) { return quantile_in_place(values, 0.5); }

// The middle value, of an even number the larger of the middle two.
template <class Value>
Value upper_median(std::vector<Value> values) {
  CHECK(!values.empty(), "a median needs values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The value nearest to the quantile's place, of two as near the larger.
template <class Value>
Value sorted_quantile_nearest(const std::vector<Value>& sorted, double share) {
  return sorted[static_cast<size_t>(quantile_place(sorted.size(), share) + 0.5)];
}

// The value at the quantile's place or the last before it.
template <class Value>
Value sorted_quantile_lower(const std::vector<Value>& sorted, double share) {
  return sorted[static_cast<size_t>(quantile_place(sorted.size(), share))];
}

}  // namespace forerun
