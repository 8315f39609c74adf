// Does the simulated allocator do what the recorded one did?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/data_scan.h"
#include "report/memory_replay.h"

namespace forerun {

struct MemoryReplayHandlers {
  std::function<void(const MemoryReplayRow&)> row;
  std::function<void(const DataProblem&)> problem;
};

// Replays the allocator trace of every run of the files that has one and whose peaks were measured.
Status replay_memory(const std::vector<std::string>& files, const AllocatorSettings& settings,
                     const MemoryReplayHandlers& handlers);

}  // namespace forerun
