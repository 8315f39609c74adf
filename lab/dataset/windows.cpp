#include "lab/dataset/windows.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/check.h"

namespace forerun::learn {
namespace {

template <class Number>
std::vector<int64_t> first_alike_of(std::span<const Number> rows, int64_t columns) {
  CHECK(columns > 0 && rows.size() % static_cast<size_t>(columns) == 0, "whole rows");
  const size_t bytes = static_cast<size_t>(columns) * sizeof(Number);
  std::unordered_map<std::string_view, int64_t> seen;
  const auto count = static_cast<int64_t>(rows.size()) / columns;
  std::vector<int64_t> first;
  first.reserve(static_cast<size_t>(count));
  const auto* row = reinterpret_cast<const char*>(rows.data());
  for (int64_t i = 0; i < count; ++i, row += bytes) {
    first.push_back(seen.try_emplace(std::string_view(row, bytes), i).first->second);
  }
  return first;
}

}  // namespace

std::vector<int64_t> window_starts(int64_t count, int64_t width, int64_t stride) {
  CHECK(width > 0 && stride > 0 && stride <= width, "windows that leave no op out");
  std::vector<int64_t> starts;
  for (int64_t start = 0; start < count; start += stride) {
    starts.push_back(start);
    if (start + width >= count) break;
  }
  return starts;
}

std::vector<int64_t> first_alike(std::span<const float> rows, int64_t columns) { return first_alike_of(rows, columns); }
std::vector<int64_t> first_alike(std::span<const int64_t> rows, int64_t columns) {
  return first_alike_of(rows, columns);
}

std::vector<float> average_windows(std::span<const float> values, std::span<const int64_t> starts, int64_t count,
                                   int64_t width, int64_t columns) {
  CHECK(values.size() == starts.size() * static_cast<size_t>(width * columns), "a value for each place of each window");
  std::vector<double> sums(static_cast<size_t>(count * columns));
  std::vector<int64_t> covered(static_cast<size_t>(count));
  for (size_t window = 0; window < starts.size(); ++window) {
    const int64_t last = std::min(starts[window] + width, count);
    const float* value = values.data() + window * static_cast<size_t>(width * columns);
    for (int64_t op = starts[window]; op < last; ++op) {
      ++covered[static_cast<size_t>(op)];
      for (int64_t column = 0; column < columns; ++column) sums[static_cast<size_t>(op * columns + column)] += *value++;
    }
  }
  std::vector<float> means(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const int64_t times = covered[i / static_cast<size_t>(columns)];
    means[i] = times == 0 ? 0.0F : static_cast<float>(sums[i] / static_cast<double>(times));
  }
  return means;
}

}  // namespace forerun::learn
