// What distributed training does to a GPU and to the network: series of their use, and Driple's twelve numbers of them.
//
// The testbed's training (python/forerun/testbed) simulated event by event. A worker computes, copies gradients to the
// host, exchanges them, copies parameters (or gradients) back, and begins again. Workers that share a GPU share its
// time. Parameter servers hold an equal slice each. Synchronous ones update when every worker's gradients are there,
// answer all, and take gradients again when all answers are out; asynchronous ones update for each worker as they come,
// one at a time. All-reduce is a ring. Transfers share the nodes' links fairly (fair_share.h), but for what Reno makes
// of few of them: to a server they take turns of a queue's length, and of those from a server the first gets more. With
// `overlap` each layer's gradients leave when its backward pass is done. Metrics are found as in measured series
// (monitor/series.h): the GPU's series is the percentage of a step in which any worker computes, times its mean use over
// all the time (copies too) for the time of computing. Left out: slow start, time-outs.
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
  bool fair = false;  // transfers share links evenly, whatever the hosts' rates say of turns
};
// "P1w2-10G", "AR4-10G", "P2w4-500M".
Result<ResourceSetting> resource_setting(std::string_view name);
// "P1w2-10G sync", "P2w4-500M async", "AR4-10G allreduce".
std::string setting_name(const ResourceSetting& setting);

struct LayerLoad {
  Nanoseconds forward;  // on a GPU of its own
  Nanoseconds backward;
  Bytes gradient;
};

struct WorkerLoad {
  std::vector<LayerLoad> layers;
  Nanoseconds update;        // by the worker, after an all-reduce
  double gpu_percent = 100;  // use of the GPU while a worker computes alone
  double tensors = 0;        // of gradients
  ServerOptimizer optimizer = ServerOptimizer::sgd;
  Traffic traffic = {};  // seconds of an iteration at the memory's bandwidth, by kTraffic
};

struct SimulationOptions {
  int64_t warm_iterations = 2;
  int64_t iterations = 40;
  Nanoseconds step = Nanoseconds(2'500'000);  // of the series
};

inline constexpr std::array<const char*, 4> kResources = {"gpu", "memory", "send", "receive"};

struct ResourceUse {
  Nanoseconds iteration;  // mean, of worker 0
  Nanoseconds compute;    // mean of the workers, from the begin of the forward to the end of the backward pass
  Nanoseconds computing;  // in which any of those that share a GPU computes, for each iteration
  std::array<monitor::Series, 4> series;         // by kResources: percent, percent, bytes a second of worker 0's link
  std::array<monitor::BurstMetrics, 4> metrics;  // by kResources: network amounts in megabytes a second
};

ResourceUse simulate_resources(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host = {},
                               const SimulationOptions& options = {});

}  // namespace forerun::scale
