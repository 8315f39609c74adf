// What kernels do to a GPU in simulated training, a millisecond at a time: the percentage of a step in which any kernel or
// copy runs, and of the memory's bandwidth that they use.
//
// Each worker's computation has a course (WorkerLoad::slices): where its kernels leave gaps, and where they move much. A
// worker that is slowed down by others on its GPU has its gaps at the same length as alone and its kernels longer, since
// they wait for their turn on it; the GPU is busy unless none of its workers has a kernel there. Copies between host and
// GPU carry half of the gradients' traffic each way.
#pragma once

#include "monitor/series.h"
#include "testbed/host_rates.h"
#include "testbed/training_events.h"
#include "testbed/worker_load.h"

namespace forerun::scale {

struct KernelSeries {
  monitor::Series gpu, memory;  // percent
};

// Of the time from `begin` to `end`, seconds, in steps of `step`.
KernelSeries kernel_series(const TrainingEvents& events, const WorkerLoad& load, const HostRates& host, double begin,
                           double end, double step);

}  // namespace forerun::scale
