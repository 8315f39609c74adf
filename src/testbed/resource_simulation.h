// What distributed training does to a GPU and to the network: series of their use, and Driple's twelve numbers of them.
//
// Training as training_events.h simulates it, seen as the testbed sees it: all workers begin at once, and as many
// iterations as fill a window are measured. Computation varies, and which worker is ahead depends on it, so several
// windows are simulated and their metrics averaged. Metrics are found as in measured series (monitor/series.h). The GPU
// is seen twice, as records see it (docs/distributed.md): kernel by kernel (kernel_series.h), and by the workers' clocks,
// which tell when any worker computes and give GPU and memory the same times and one level each.
#pragma once

#include <array>
#include <cstdint>

#include "base/quantity.h"
#include "monitor/series.h"
#include "testbed/host_rates.h"
#include "testbed/resource_setting.h"
#include "testbed/worker_load.h"

namespace forerun::scale {

struct SimulationOptions {
  int64_t warm_iterations = 0;  // before the window
  int64_t iterations = 0;       // 0: as many as fill the window
  Nanoseconds window = Nanoseconds(1'600'000'000);
  int64_t windows = 4;
  Nanoseconds step = Nanoseconds(2'500'000);         // of the network's series and of the workers' clocks
  Nanoseconds kernel_step = Nanoseconds(1'000'000);  // of the GPU's and its memory's
};

inline constexpr std::array<const char*, 4> kResources = {"gpu", "memory", "send", "receive"};

struct ResourceUse {
  Nanoseconds iteration;  // mean, of worker 0
  Nanoseconds compute;    // mean of the workers, from the begin of the forward to the end of the backward pass
  Nanoseconds computing;  // in which any of those that share a GPU computes, for each iteration
  std::array<monitor::Series, 4> series;         // by kResources: percent, percent, bytes a second of worker 0's link
  std::array<monitor::BurstMetrics, 4> metrics;  // by kResources: network amounts in megabytes a second
  std::array<monitor::BurstMetrics, 2> clocks;   // of gpu and memory, with the times of the workers' clocks
};

// Series are those of one window.
ResourceUse simulate_resources(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host = {},
                               const SimulationOptions& options = {});

}  // namespace forerun::scale
