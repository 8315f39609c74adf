// What the hosts of a testbed do that no phase tells by itself: found by simulating measured workloads.
//
// One constant after the other is moved up and down by a factor as long as the simulated bursts and idles come closer to
// the measured ones, with ever smaller factors. How links are shared belongs to a setting and is found from
// its workloads alone. Deterministic.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "ingest/resources/resource_record.h"
#include "testbed/resource_simulation.h"

namespace forerun::scale {

// Idle duration, burst duration (ms) and burst amount by kResources; zero: not known.
using BurstFigureTable = std::array<std::array<double, 3>, 4>;

struct MeasuredWorkload {
  WorkerLoad load;
  ResourceSetting setting;
  MeasuredPhases phases;
  BurstFigureTable metrics = {};
  GpuTimes gpu_times = GpuTimes::clocks;
};

// As records with such times of the GPU have them; memory has no times of its own by the workers' clocks.
BurstFigureTable burst_figures(const ResourceUse& use, GpuTimes times);

// Mean of |simulated - measured| / measured over the figures that are known; no figure counts more than twice itself.
double figures_error(const BurstFigureTable& simulated, const BurstFigureTable& measured);

// The mean over the workloads.
double simulation_error(std::span<const MeasuredWorkload> workloads, const HostRates& rates);

// `progress`: called now and then with the error so far.
HostRates tune_host_rates(std::span<const MeasuredWorkload> workloads, const HostRates& first,
                          const std::function<void(double)>& progress = {});

}  // namespace forerun::scale
