// WorkerLoad: what one worker of data-parallel training does in an iteration on a GPU of its own.
#pragma once

#include <vector>

#include "base/quantity.h"
#include "testbed/host_rates.h"

namespace forerun::scale {

struct LayerLoad {
  Nanoseconds forward;  // on a GPU of its own
  Nanoseconds backward;
  Bytes gradient;
};

// One of many equally long parts of the forward and backward pass, in order.
struct LoadSlice {
  double busy = 0;       // share of it in which a kernel runs
  Traffic traffic = {};  // as WorkerLoad's, of this part
};

struct WorkerLoad {
  std::vector<LayerLoad> layers;
  std::vector<LoadSlice> slices;  // empty: kernels and their traffic are spread evenly
  Nanoseconds update;             // by the worker, after an all-reduce
  double gpu_percent = 100;       // use of the GPU while a worker computes alone
  double tensors = 0;             // of gradients
  ServerOptimizer optimizer = ServerOptimizer::sgd;
  Traffic traffic = {};       // seconds of an iteration at the memory's bandwidth, by kTraffic
  double update_traffic = 0;  // and of the update by the worker
};

}  // namespace forerun::scale
