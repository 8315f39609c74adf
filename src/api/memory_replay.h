// Does the simulated allocator do what the recorded one did?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "memory/trace_replay.h"
#include "records/data_scan.h"

namespace forerun {

// One peak, simulated and measured.
struct PeakPair {
  Bytes simulated;
  Bytes measured;
  [[nodiscard]] bool exact() const { return simulated == measured; }
  [[nodiscard]] double error() const;  // |simulated - measured| / measured
};

// How near the simulated allocator comes to a recorded one, for one run.
struct MemoryReplayRow {
  std::string id;
  std::string family;
  PeakPair requested, allocated, reserved;
  TraceReplay replay;
};

struct MemoryReplayHandlers {
  std::function<void(const MemoryReplayRow&)> row;
  std::function<void(const DataProblem&)> problem;
};

// Replays the allocator trace of every run of the files that has one and whose peaks were measured.
Status replay_memory(const std::vector<std::string>& files, const AllocatorSettings& settings,
                     const MemoryReplayHandlers& handlers, const WorkControl& control = {});

}  // namespace forerun
