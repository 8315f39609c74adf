// Kernels a millisecond at a time: what a worker's course says, kept in sum and in place.
#include "testbed/kernel_series.h"

#include <gtest/gtest.h>

#include <numeric>

#include "testbed/resource_simulation.h"

namespace forerun::scale {
namespace {

// 40 ms of computation, busy throughout, that moves everything in its first quarter.
WorkerLoad heavy_at_first() {
  WorkerLoad load;
  load.layers = {{Nanoseconds(10'000'000), Nanoseconds(30'000'000), Bytes(50'000'000)}};
  load.traffic[0] = 0.008;
  load.slices.resize(4);
  for (LoadSlice& slice : load.slices) slice.busy = 1;
  load.slices[0].traffic[0] = 0.008;
  return load;
}

HostRates instant_hosts() { return {1e18, 1e18, 1e18, 1, 1e18, Nanoseconds()}; }

double sum_of(const monitor::Series& series) {
  return std::accumulate(series.values.begin(), series.values.end(), 0.0);
}

TEST(KernelSeries, PutsTrafficWhereTheCourseHasIt) {
  const ResourceSetting setting = *resource_setting("P1w1-10G");
  const TrainingEvents events = training_events(heavy_at_first(), setting, instant_hosts(), {.iterations = 1});
  const double end = events.begins[0][1];
  const KernelSeries series = kernel_series(events, heavy_at_first(), instant_hosts(), 0, end, 1e-3);
  EXPECT_NEAR(series.gpu.values[20], 100, 1e-6);
  EXPECT_NEAR(series.gpu.values[45], 0, 1e-6);  // gradients travel
  EXPECT_NEAR(series.memory.values[5], 80, 1e-6);
  EXPECT_NEAR(series.memory.values[15], 0, 1e-6);
  EXPECT_NEAR(sum_of(series.memory), 100 * 8, 1e-3);  // 8 ms at the memory's bandwidth
  EXPECT_NEAR(sum_of(series.gpu), 100 * 40, 1e-3);
}

TEST(KernelSeries, MemoryHasBurstsOfItsOwn) {
  const ResourceUse use = simulate_resources(heavy_at_first(), *resource_setting("P1w1-10G"), instant_hosts());
  EXPECT_NEAR(use.metrics[0].burst_ms, 40, 1);
  EXPECT_NEAR(use.metrics[1].burst_ms, 10, 1);
  EXPECT_NEAR(use.metrics[0].idle_ms + use.metrics[0].burst_ms, use.metrics[1].idle_ms + use.metrics[1].burst_ms, 0.1);
  EXPECT_EQ(use.clocks[0].burst_ms, use.clocks[1].burst_ms);  // by clocks it has not
}

TEST(KernelSeries, WorkersOnOneGpuAddTheirTraffic) {
  const ResourceSetting setting = *resource_setting("P1w2-10G");
  const WorkerLoad load = heavy_at_first();
  const TrainingEvents events = training_events(load, setting, instant_hosts(), {.iterations = 3});
  const double end = std::max(events.begins[0][3], events.begins[1][3]);
  const KernelSeries series = kernel_series(events, load, instant_hosts(), 0, end, 1e-3);
  EXPECT_NEAR(sum_of(series.memory), 100 * 8 * 2 * 3, 100);  // the last step is cut off
}

}  // namespace
}  // namespace forerun::scale
