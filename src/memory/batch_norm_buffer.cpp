#include "memory/batch_norm_buffer.h"

#include <algorithm>

#include "memory/rounding.h"

namespace forerun {
namespace {

constexpr int64_t kFloatBytes = 4;

}  // namespace

BatchNormSums batch_norm_sums(int64_t rows, int64_t channels, bool backward) {
  constexpr int64_t kThreads = 512, kTile = 32, kRowsOfThread = 16, kMostBlocks = 128, kFewBlocks = 8;
  if (rows < 1 || channels < 1) return {};
  int64_t width = std::min(floor_power(channels), kTile);
  const int64_t height = std::min(floor_power(divide_up(rows, kRowsOfThread)), kThreads / width);
  if (width * height != kThreads) width = std::min(floor_power(channels), kThreads / height);
  const int64_t blocks = std::min(divide_up(rows, height * kRowsOfThread), kMostBlocks);
  if (blocks < kFewBlocks) return {};
  const int64_t sums = backward ? 2 : 4;
  return {.staging = kFloatBytes * sums * channels * blocks, .counters = kFloatBytes * divide_up(channels, width)};
}

int64_t cudnn_batch_norm_workspace(int64_t rows, int64_t channels, bool backward) {
  constexpr int64_t kFixed = 1024, kSums = 2;
  if (rows < 1 || channels < 1) return 0;
  const bool aligned = channels % 4 == 0;
  const int64_t width = aligned ? 64 : 16;  // channels of a block
  const int64_t pieces = divide_up(rows, backward ? 96 : 64);
  const int64_t further = backward ? 0 : divide_up(pieces, aligned ? 128 : 32);  // pieces of the sums themselves
  return divide_up(channels, width) * width * kSums * kFloatBytes * (pieces + further) + kFixed;
}

}  // namespace forerun
