// Prediction: the answer of `forerun predict` for one run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "graph/training_run.h"
#include "memory/live_storages.h"
#include "predict/job_time.h"
#include "predict/memory_answer.h"
#include "timeline/host_gpu_timeline.h"

namespace forerun {

// What an op kind (name and phase) or a module costs on the GPU.
struct CostShare {
  std::string name;   // "aten.convolution_backward.default" or "layer4.0.conv2"
  std::string phase;  // of ops; empty for modules
  int64_t count = 0;  // ops
  Nanoseconds gpu;
  double share = 0;     // of the GPU's busy time
  std::string bound;    // what limits most of it: compute, memory, latency
  std::string largest;  // of ops: the operands of the costliest one
};

// What would take away the host's bound on an iteration.
struct HostRemedy {
  std::string kind;  // "cuda_graphs", "fused_optimizer", "batch"
  std::string what;  // "batch 128"
  Nanoseconds iteration;
  double samples_per_second = 0;
};

struct Prediction {
  std::string id;     // record id, zoo name or file
  std::string model;  // family or file, for the headline
  std::string gpu;
  InputSpec input;
  TrainingSetup setup;
  int64_t parameters = 0;
  int64_t ops = 0;
  int64_t kernels = 0;

  IterationTiming times;
  TimeParts parts;             // of an iteration
  std::optional<JobTime> job;  // where the user said how long it is
  Nanoseconds p10, p90;        // between which eight of ten measured iterations lie
  double measured_share = 0;   // of the GPU's busy time, in ops whose like was measured
  std::map<std::string, int64_t>
      out_of_distribution;           // the other ops, by name: outside what was measured, costed all the same
  std::vector<HostRemedy> remedies;  // where the host bounds the iteration
  double samples_per_second = 0;
  double tokens_per_second = 0;  // 0 where the input is not tokens

  MemoryEstimate memory;
  Bytes context;  // what the CUDA context takes beside the allocator
  Bytes device_memory;
  bool fits = true;  // as expected: reserved + context within the device's memory; memory_answer has the verdict
  MemoryAnswer memory_answer;

  std::vector<CostShare> costliest_ops;        // at most ten
  std::vector<CostShare> costliest_modules;    // at most ten
  std::vector<CostShare> costliest_layers;     // the same, layers of a list together ("layer1.*.conv2"); at most ten
  std::map<std::string, int64_t> unknown_ops;  // no rule: costed by their bytes
  std::vector<std::string> usual_assumptions;  // those of every prediction
  std::vector<std::string> assumptions;        // those of this one
  std::vector<std::string> warnings;  // of the record it is made from: what may make it wrong by more than its range
};

// How far a prediction lies from what was measured.
struct ErrorSample {
  std::string family;
  double iteration = 0;  // |predicted - measured| / measured
  double gpu = 0;        // of GPU busy time
  double allocated = 0;
  double reserved = 0;
  bool gpu_bound = false;  // measured: GPU busy at least 90 % of the iteration
};

}  // namespace forerun
