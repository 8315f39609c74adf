// How much memory will a run take, and does it fit?
#pragma once

#include "device/device.h"
#include "graph/training_run.h"
#include "memory/iteration_replay.h"

namespace forerun {

struct PredictedMemory {
  MemoryEstimate estimate;
  Bytes context;     // what the CUDA context takes beside the allocator
  bool fits = true;  // perhaps only because the allocator gave unused segments back
};

// Replays three iterations on the device. Where they need more than it has, replays them again within its memory: an
// allocator that runs out gives unused segments back and goes on.
PredictedMemory predicted_memory(const TrainingRun& run, const Device& device, const WorkspaceTable& workspaces);

}  // namespace forerun
