// Sliding windows over a trace: where they start, which are alike, and the average of what overlapping windows say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace forerun::learn {

// Starts of windows of `width` over `count` ops, `stride` apart, the first at 0; the last reaches the end and may hang
// over it. None where there are no ops. `stride` must not exceed `width`, so that every op is covered.
std::vector<int64_t> window_starts(int64_t count, int64_t width, int64_t stride);

// For each row of `columns` numbers the first that holds the same ones, bit by bit: itself where there is none before. Repeated
// blocks of a model give the same windows over and over.
std::vector<int64_t> first_alike(std::span<const float> rows, int64_t columns);
std::vector<int64_t> first_alike(std::span<const int64_t> rows, int64_t columns);

// `values` holds width x columns numbers for each window, in the order of `starts`. The result has count x columns: for
// each op the mean over the windows that cover it. Places beyond the last op are left out.
std::vector<float> average_windows(std::span<const float> values, std::span<const int64_t> starts, int64_t count,
                                   int64_t width, int64_t columns);

}  // namespace forerun::learn
