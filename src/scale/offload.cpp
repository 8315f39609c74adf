#include "scale/offload.h"

#include <algorithm>
#include <cmath>

namespace forerun::scale {
namespace {

constexpr double kDdr4 = 2 * 8 * 25.6e9;  // two sockets, eight channels each
constexpr double kDdr5 = 2 * 8 * 38.4e9;

Nanoseconds seconds_of(double seconds) { return Nanoseconds(std::llround(std::min(seconds, 9e9) * 1e9)); }

}  // namespace

double host_bandwidth(const Device& gpu) { return gpu.compute_capability >= kHopper ? kDdr5 : kDdr4; }

int64_t host_bytes(const StateBytes& bytes, bool half_weights) {
  // States and the optimizer's weights are read and written, gradients read; a copy for the GPU is written.
  return half_weights ? 2 * bytes.state + bytes.gradient + bytes.parameter
                      : 2 * (bytes.state + bytes.parameter) + bytes.gradient;
}

OffloadedUpdate offloaded_update(double parameters, const StateBytes& bytes, bool half_weights,
                                 const GpuCluster& cluster) {
  const double pcie = cluster.gpu.pcie_bandwidth / 2 * kPcieReach;  // one direction
  const auto sharing = static_cast<double>(std::min(cluster.node, cluster.gpus));
  const double memory = host_bandwidth(cluster.gpu) * kHostReach / sharing;
  return {.out = seconds_of(parameters * static_cast<double>(bytes.gradient) / pcie),
          .step = seconds_of(parameters * static_cast<double>(host_bytes(bytes, half_weights)) / memory),
          .back = seconds_of(parameters * static_cast<double>(bytes.parameter) / pcie)};
}

Nanoseconds shown_of(const OffloadedUpdate& update, Nanoseconds backward) {
  return std::max(update.out - backward, Nanoseconds()) + std::max(update.step, update.back);
}

}  // namespace forerun::scale
