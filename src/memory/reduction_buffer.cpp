#include "memory/reduction_buffer.h"

#include <algorithm>

#include "memory/rounding.h"

namespace forerun {
namespace {

constexpr int64_t kThreads = 512;  // of a block
constexpr int64_t kWarp = 32;
constexpr int64_t kFewValues = 16;  // of a thread
constexpr int64_t kManyValues = 256;
constexpr int64_t kInputVector = 4;
constexpr int64_t kAccumulator = 4;  // bytes: float
constexpr int64_t kCounter = 4;

int64_t output_vector(const Reduction& r) {
  if (r.along_fastest) return 1;
  return r.output_multiple % 4 == 0 ? 4 : r.output_multiple % 2 == 0 ? 2 : 1;
}

}  // namespace

ReductionBuffer reduction_buffer(const Reduction& r, const ReductionDevice& device) {
  if (r.outputs < 1 || r.inputs < 1) return {};
  const int64_t vector = output_vector(r);
  int64_t fast = r.along_fastest ? r.inputs : r.outputs;
  const int64_t slow = r.along_fastest ? r.outputs : r.inputs;
  if (r.along_fastest && r.whole && fast > 128) fast /= kInputVector;
  if (!r.along_fastest) fast /= vector;

  const int64_t threads = kThreads / vector;
  const int64_t fast_power = fast < threads ? floor_power(std::max<int64_t>(fast, 1)) : threads;
  const int64_t slow_power = slow < threads ? floor_power(slow) : threads;
  int64_t width = std::min(fast_power, kWarp);
  const int64_t height = std::min(slow_power, threads / width);
  width = std::min(fast_power, threads / height);

  int64_t input_step = r.along_fastest ? width : 1;
  int64_t output_step = r.along_fastest ? 1 : width;
  if (divide_up(r.inputs, input_step) < std::min(height * kFewValues, kManyValues)) {
    return {};  // rows of threads take outputs of their own, and blocks do not share
  }
  input_step *= height;
  const int64_t values = divide_up(r.inputs, input_step);
  const int64_t grid = divide_up(r.outputs / vector, output_step);
  const int64_t target = device.multiprocessors * (device.threads / (width * height));
  if (values < kManyValues || grid > target) return {};
  const int64_t blocks =
      std::max(std::min(divide_up(target, grid), divide_up(values, kFewValues)), divide_up(values, kManyValues));
  if (blocks <= 1) return {};
  int64_t partial = kAccumulator * r.outputs * blocks;
  if (!r.along_fastest) partial *= width * vector;  // lanes do not combine theirs
  return {.partial = partial, .counters = kCounter * grid};
}

}  // namespace forerun
