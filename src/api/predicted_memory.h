// How much memory will a run take, and does it fit?
#pragma once

#include <string>

#include "device/device.h"
#include "graph/training_run.h"
#include "memory/data_parallel.h"
#include "memory/iteration_replay.h"
#include "memory/memory_log.h"
#include "memory/memory_spread.h"
#include "report/memory_answer.h"

namespace forerun {

// What is asked beside the run itself.
struct MemoryQuestion {
  AllocatorSettings allocator;
  std::string allocator_text;  // as given
  DataParallel parallel;
  bool accumulating = false;             // one of several micro-batches whose gradients are added up
  bool checkpointing = false;            // each block of the model runs its forward pass again for its backward pass
  Bytes reserve;                         // of the device's memory, to be left free
  bool moment = false;                   // also when the peak is, and what lives then
  const MemorySpread* spread = nullptr;  // null: no ranges
};

struct PredictedMemory {
  MemoryEstimate estimate;
  Bytes context;     // what the CUDA context takes beside the allocator
  bool fits = true;  // perhaps only because the allocator gave unused segments back
  MemoryAnswer answer;
};

// Replays three iterations on the device. Where they need more than it has, replays them again within its memory: an
// allocator that runs out gives unused segments back and goes on.
PredictedMemory predicted_memory(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                                 const MemoryQuestion& question = {});

// The same with every allocation and free, and the iteration as this question has it.
struct PredictedLog {
  Graph graph;
  MemoryLog log;
};
PredictedLog predicted_log(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces,
                           const MemoryQuestion& question = {});

// What the CUDA context takes of the device's memory beside the allocator.
Bytes context_of(const Device& device);

}  // namespace forerun
