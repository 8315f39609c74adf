#include "lab/dataset/other_gpus/wave_scaling.h"

#include <algorithm>
#include <cmath>

namespace forerun::learn {
namespace {

// What a multiprocessor holds at once, by compute capability (CUDA C++ Programming Guide, technical specifications).
struct Residency {
  int64_t threads = 2048;
  int64_t blocks = 32;
};

Residency residency_of(const Device& device) {
  switch (device.compute_capability) {
    case 75: return {.threads = 1024, .blocks = 16};
    case 86: return {.threads = 1536, .blocks = 16};
    case 89: return {.threads = 1536, .blocks = 24};
    default: return {};
  }
}

}  // namespace

KernelLaunch usual_launch(const GpuWork& work) { return {.blocks = usual_blocks(work)}; }

double wave_size(const Device& device, int64_t threads) {
  const Residency most = residency_of(device);
  const int64_t blocks = std::clamp<int64_t>(most.threads / std::max<int64_t>(1, threads), 1, most.blocks);
  return static_cast<double>(std::max<int64_t>(1, device.sm_count) * blocks);
}

double memory_boundness(const GpuWork& work, const Device& destination) {
  const double ridge = destination.rate(work.unit) / destination.memory_bandwidth;
  const double intensity = work.intensity();
  return intensity <= ridge ? 1 - 0.5 * intensity / ridge : 0.5 * ridge / intensity;
}

double wave_scaled(double us, const GpuWork& work, const KernelLaunch& launch, const Device& origin,
                   const Device& destination) {
  const double here = wave_size(origin, launch.threads);
  const double there = wave_size(destination, launch.threads);
  const double clocks = origin.clock_mhz / destination.clock_mhz;
  if (launch.blocks <= std::min(here, there)) return us * clocks;
  const double g = memory_boundness(work, destination);
  const double waves = std::ceil(launch.blocks / there) / std::ceil(launch.blocks / here);
  const double bandwidths = origin.memory_bandwidth / destination.memory_bandwidth * there / here;
  return us * waves * std::pow(bandwidths, g) * std::pow(clocks, 1 - g);
}

}  // namespace forerun::learn
