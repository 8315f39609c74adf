// What distributed training does to a GPU and to the network: series of their use, and Driple's twelve numbers of them.
//
// The testbed's training (python/forerun/testbed) simulated event by event. A worker computes, copies gradients to the
// host, exchanges them, copies parameters (or gradients) back, and begins again. Workers that share a GPU share its
// time. Parameter servers hold an equal slice each; synchronous ones update when every worker's gradients are there and
// answer all, asynchronous ones update for each worker as they come, one at a time. All-reduce is a ring. Transfers
// share the nodes' links fairly (fair_share.h). With `overlap` each layer's gradients leave when its backward pass is
// done. Metrics are found as in measured series (monitor/series.h): the GPU's series is the percentage of a step in
// which any worker computes, times the mean use meanwhile. Left out: jitter, slow start, memory traffic of copies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "monitor/series.h"
#include "scale/host_rates.h"

namespace forerun::scale {

struct ResourceSetting {
  int64_t servers = 1;  // 0: all-reduce
  int64_t workers = 2;
  double bits_per_second = 10e9;  // of every node's link
  bool sync = true;
  bool shared_gpu = true;
  bool overlap = false;
};
// "P1w2-10G", "AR4-10G", "P2w4-500M".
Result<ResourceSetting> resource_setting(std::string_view name);

struct LayerLoad {
  Nanoseconds forward;  // on a GPU of its own
  Nanoseconds backward;
  Bytes gradient;
};

struct WorkerLoad {
  std::vector<LayerLoad> layers;
  Nanoseconds update;         // by the worker, after an all-reduce
  double gpu_percent = 100;   // use of the GPU while a worker computes alone
  double memory_percent = 0;  // of its memory's bandwidth
};

struct SimulationOptions {
  int64_t warm_iterations = 2;
  int64_t iterations = 40;
  Nanoseconds step = Nanoseconds(2'500'000);  // of the series
};

inline constexpr std::array<const char*, 4> kResources = {"gpu", "memory", "send", "receive"};

struct ResourceUse {
  Nanoseconds iteration;                  // mean, of worker 0
  Nanoseconds compute;                    // of that, from the begin of the forward to the end of the backward pass
  std::array<monitor::Series, 4> series;  // by kResources: percent, percent, bytes a second of worker 0's link
  std::array<monitor::BurstMetrics, 4> metrics;  // by kResources: network amounts in megabytes a second
};

ResourceUse simulate_resources(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host = {},
                               const SimulationOptions& options = {});

}  // namespace forerun::scale
