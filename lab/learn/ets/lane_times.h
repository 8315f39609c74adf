// Two lanes for ETS: what the target `lanes` learns, and how an iteration follows from it.
//
// Where the host is late, the gap behind an op depends on how far the host had run ahead by then, which a window of 12 ops
// cannot see. What an op asks of each lane it can: the GPU time of its kernels, and the host's time to issue it (with the
// ops without kernels before it). So the network gives those, as ratios to rules of thumb that it is told, and the iteration is what
// the two lanes of timeline/host_gpu_timeline.h make of them. GPU times are measured; host times by op are not, and are
// those of Forerun's host model (learn::Targets::host_us).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/dataset/dataset.h"
#include "lab/dataset/known_devices.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

struct LaneScale {
  double gpu_us = 1;   // by the roofline
  double host_us = 1;  // so much for each op that the host issues
  double skipped = 0;  // ops without kernels since the op before
};

// Scales of the ops at these places of the example, in their order.
std::vector<LaneScale> lane_scales(const DataSet& data, const Example& example, std::span<const uint32_t> places,
                                   const Device& device);

// What the network is told of a scale and of the host, brought to a range like that of standard-scaled features.
inline constexpr size_t kLaneColumns = 4;
void add_lane_columns(const LaneScale& scale, const Example& example, std::vector<float>& out);

// The host's time for each of these ops: its own and that of the ops without kernels since the op before.
std::vector<float> lane_host_us(const Example& example, std::span<const uint32_t> places);

// The iteration of ops with these times on the GPU and the host. Fills iteration_ms, gpu_busy_ms, op_us, and gap_us: the idle
// time, shared out by the host's time for the op that comes next.
Prediction lane_prediction(std::span<const float> gpu_us, std::span<const float> host_us,
                           std::span<const uint32_t> places, size_t ops, const Device& device);

}  // namespace forerun::learn
