#include "lab/learn/ets/lane_times.h"

#include <algorithm>
#include <cmath>

#include "timeline/host_gpu_timeline.h"

namespace forerun::learn {
namespace {

constexpr double kKernelUs = 2;   // that a kernel takes however little it does
constexpr double kHostOpUs = 20;  // to issue an op
constexpr double kReached = 0.5;  // of peak rates

double arithmetic_rate(const OpRow& row, const Device& device) {
  const bool half = size_of(row.dtype) == 2;
  return device.rate(half ? Unit::bf16_tensor : Unit::fp32);
}

}  // namespace

std::vector<LaneScale> lane_scales(const DataSet& data, const Example& example, std::span<const uint32_t> places,
                                   const Device& device) {
  const double bandwidth = std::max(device.memory_bandwidth, 1.0);
  std::vector<LaneScale> scales;
  int64_t before = -1;
  for (const uint32_t place : places) {
    const OpRow& row = data.rows()[example.ops[place]];
    const double bytes = row.amount(Amount::bytes_read) + row.amount(Amount::bytes_written);
    const double arithmetic = row.amount(Amount::flops) / std::max(kReached * arithmetic_rate(row, device), 1.0);
    LaneScale scale{.gpu_us = kKernelUs + 1e6 * std::max(arithmetic, bytes / bandwidth)};
    scale.skipped = static_cast<double>(place) - static_cast<double>(before) - 1;
    scale.host_us = kHostOpUs * (1 + 0.25 * scale.skipped);
    before = place;
    scales.push_back(scale);
  }
  return scales;
}

void add_lane_columns(const LaneScale& scale, const Example& example, std::vector<float>& out) {
  out.push_back(static_cast<float>((std::log(scale.gpu_us) - 3) / 2));
  out.push_back(static_cast<float>(std::log1p(scale.skipped) - 0.5));
  out.push_back(example.host_slowness > 0 ? static_cast<float>(4 * std::log(example.host_slowness)) : 0.0F);
  out.push_back(example.host_slowness > 0 ? 1.0F : 0.0F);
}

std::vector<float> lane_host_us(const Example& example, std::span<const uint32_t> places) {
  std::vector<float> times;
  size_t at = 0;
  for (const uint32_t place : places) {
    double sum = 0;
    for (; at <= place; ++at) sum += example.targets.host_us[at];
    times.push_back(static_cast<float>(sum));
  }
  return times;
}

Prediction lane_prediction(std::span<const float> gpu_us, std::span<const float> host_us,
                           std::span<const uint32_t> places, size_t ops, const Device& device) {
  std::vector<forerun::LaneOp> lanes;  // not those of lab/trees/trace_lanes.h
  double host = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    lanes.push_back({.host = Nanoseconds(std::llround(host_us[i] * 1e3)),
                     .gpu = Nanoseconds(std::llround(gpu_us[i] * 1e3)),
                     .kernels = 1});
    host += host_us[i];
  }
  const IterationTiming timing = host_gpu_timeline(lanes, {.gap = device.launch_gap});
  Prediction prediction;
  prediction.iteration_ms = static_cast<double>(timing.iteration.value) / 1e6;
  prediction.gpu_busy_ms = static_cast<double>(timing.gpu_busy.value) / 1e6;
  const double idle = std::max(*prediction.iteration_ms - *prediction.gpu_busy_ms, 0.0) * 1e3;
  prediction.op_us.resize(ops);
  prediction.gap_us.resize(ops);
  for (size_t i = 0; i < places.size(); ++i) {
    prediction.op_us[places[i]] = gpu_us[i];
    const float next = host_us[(i + 1) % places.size()];  // that the GPU waits for behind this op
    prediction.gap_us[places[i]] = static_cast<float>(host > 0 ? idle * next / host : 0.0);
  }
  return prediction;
}

}  // namespace forerun::learn
