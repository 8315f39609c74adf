// Distributed training event by event: when workers compute, and what their links carry.
//
// The testbed's training (python/forerun/testbed). A worker computes, copies gradients to the host, exchanges them, copies
// parameters (or gradients) back, and begins again. Workers that share a GPU share its time. Parameter servers hold an
// equal slice each. Synchronous ones update when every worker's gradients are there, answer all, and take gradients again
// when all answers are out; asynchronous ones update for each worker as they come, one at a time. All-reduce is a ring.
// With `overlap` each layer's gradients leave when its backward pass is done. Which gradients share a message is
// timeline/gradient_exchange.h's; what is here beyond that module is what one machine's hosts do: copies, servers that compute,
// links that are shared unevenly, workers that drift apart. Left out: slow start, time-outs.
#pragma once

#include <cstdint>
#include <vector>

#include "testbed/host_rates.h"
#include "testbed/resource_setting.h"
#include "testbed/worker_load.h"

namespace forerun::scale {

// A stretch of time in which nothing changed; seconds.
struct Stretch {
  double begin = 0, end = 0;
  double gpu = 0;  // use of worker 0's GPU, by computation
  bool computing = false;
  double send = 0, receive = 0;  // bytes a second, worker 0
};

// A worker's computation while its pace does not change: which part of it, from 0 to 1, it does from when to when.
struct ComputeSpan {
  size_t worker = 0;
  double begin = 0, end = 0;
  double from = 0, to = 0;
  double pace = 1;  // of a worker that is alone on the GPU
};

// A copy of all gradients, or of a part of them, between host and GPU.
struct CopySpan {
  size_t worker = 0;
  double begin = 0, end = 0;
  double share = 1;          // of the gradients
  bool with_update = false;  // the optimizer steps behind it
};

struct TrainingEvents {
  std::vector<Stretch> stretches;
  std::vector<ComputeSpan> computing;  // of the workers whose GPU is looked at: all, or worker 0
  std::vector<CopySpan> copying;
  double use_alone = 0;  // of the GPU while one worker computes
  // By worker and iteration: when it began, and when its backward pass ended. Begins hold one more: the end of the last.
  std::vector<std::vector<double>> begins;
  std::vector<std::vector<double>> computed;
  double copy_seconds = 0;  // of all gradients, one way
};

struct EventOptions {
  int64_t iterations = 40;
  uint64_t seed = 1;  // of how computation varies
};

TrainingEvents training_events(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host,
                               const EventOptions& options = {});

}  // namespace forerun::scale
