// How much memory will a run take, and does it fit?
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "device/device.h"
#include "graph/training_run.h"
#include "memory/data_parallel.h"
#include "memory/iteration_replay.h"
#include "memory/memory_intervals.h"
#include "memory/memory_log.h"
#include "predict/memory_answer.h"

namespace forerun {

// What is asked beside the run itself.
struct MemoryQuestion {
  AllocatorSettings allocator;
  std::string allocator_text;  // as given
  DataParallel parallel;
  bool accumulating = false;                 // one of several micro-batches whose gradients are added up
  Bytes reserve;                             // of the device's memory, to be left free
  bool moment = false;                       // also when the peak is, and what lives then
  std::optional<MemoryIntervals> intervals;  // nothing: no ranges
  std::optional<double> margin;              // share that a run may take beyond what is predicted; none: the interval's
};

// Whether its numbers make sense: questions ask it first, whoever filled it in.
Status check_memory(const MemoryQuestion& question);

struct PredictedMemory {
  MemoryEstimate estimate;
  Bytes context;     // what the CUDA context takes beside the allocator
  bool fits = true;  // as expected, perhaps only because the allocator gave unused segments back
  MemoryAnswer answer;
};

// Replays three iterations on the device. Where they need more than it has, replays them again within its memory: an
// allocator that runs out gives unused segments back and goes on. Whether the run fits (MemoryAnswer::verdict) is asked
// three times: as predicted, and with both ends of the range.
//
// Of a run that does not fit only a lower bound is known: what its blocks take together, and at least the device's
// memory. What an allocator with endless memory would reserve is no such bound; it may fall when a batch grows.
// `endless`: the first of these replays, where the caller has it of a device with the same demands (`replay_options`).
PredictedMemory predicted_memory(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                                 const MemoryQuestion& question = {}, const IterationReplay* endless = nullptr);

// How the run is replayed there.
IterationReplayOptions replay_options(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                                      const MemoryQuestion& question);

// The same with every allocation and free, in endless memory, and the iteration as this question has it.
struct PredictedLog {
  Graph graph;
  MemoryLog log;
};
Result<PredictedLog> predicted_log(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                                   const MemoryQuestion& question = {});

// What the CUDA context takes of the device's memory beside the allocator.
Bytes context_of(const Device& device);

}  // namespace forerun
