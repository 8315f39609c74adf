// A pipeline's schedule played micro-batch by micro-batch: 1F1B, interleaved 1F1B, and 1F1B with backward passes in two parts.
//
// Source: Narayanan et al., PipeDream (2019) and Megatron (2021). A device holds `chunks` parts of the model; part c of
// device d is virtual stage c * devices + d. Each device runs its forward and backward passes in the order Megatron
// gives them: some forward passes to fill the pipeline, then one forward and one backward in turn, then the rest. What
// goes to the next stage arrives `hop` later. ZB-H1 (Qi et al., 2023) takes gradients of weights out of the backward
// passes, which others wait for, and runs them later where the device would wait, the later the nearer it is to the end, so
// that no more micro-batches are in flight than with 1F1B. A device does one thing at a time; sending costs it nothing. After
// a hundred thousand passes a round, in which as many micro-batches go through as there are devices, is taken to repeat, and the
// rest is counted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "timeline/task_graph.h"

namespace forerun::scale {

struct StageTimes {
  Nanoseconds forward;
  Nanoseconds backward;
  Nanoseconds weights{};  // of the backward pass, what makes gradients of weights
};

struct PipelineShape {
  int64_t devices = 1;
  int64_t chunks = 1;
  int64_t micro_batches = 1;
  bool zero_bubble = false;  // with one chunk
};

struct PipelinePass {
  int32_t chunk = 0;
  int32_t micro_batch = 0;
  bool backward = false;
  bool weights = false;  // gradients of weights apart
};

// The order in which a device runs its passes. With several chunks, micro-batches must be a multiple of devices.
std::vector<PipelinePass> device_order(const PipelineShape& shape, int64_t device);

struct PipelineRun {
  Nanoseconds end;
  std::vector<Nanoseconds> device_end;  // of each device's last backward pass
};

// `stages`: by virtual stage, devices x chunks of them.
PipelineRun run_pipeline(std::span<const StageTimes> stages, const PipelineShape& shape, Nanoseconds hop);

// Where passes end, by device and in its device_order; all of them are played.
std::vector<std::vector<Nanoseconds>> pass_ends(std::span<const StageTimes> stages, const PipelineShape& shape,
                                                Nanoseconds hop);
// What a pass takes on a device.
Nanoseconds duration_of(const PipelinePass& pass, const StageTimes& stage, const PipelineShape& shape, int64_t device);

// The same schedule as tasks, one lane a device, for timeline/simulator.h.
Result<TaskGraph> pipeline_tasks(std::span<const StageTimes> stages, const PipelineShape& shape, Nanoseconds hop);

}  // namespace forerun::scale
