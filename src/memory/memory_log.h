// MemoryLog: every allocation and free of a replayed training run in order, and what is live after any of them.
//
// What replay_iterations tells its observer, kept. From it come the moment of the peak, the timeline and the snapshot;
// an answer that needs only the peaks goes without.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memory/iteration_replay.h"

namespace forerun {

struct MemoryLog {
  IterationReplay replay;
  std::vector<ReplayEvent> events;
  size_t peak = 0;  // the event after which most is allocated; the first of equals
};

MemoryLog log_iterations(const Graph& graph, const IterationReplayOptions& options);

struct LiveBlock {
  StorageId storage;  // invalid for temporaries and workspaces
  OpId made_by;       // invalid where it was there before the first op
  Use use = Use::temporary;
  int64_t bytes = 0;  // of the block
  int64_t address = 0;
};

// What is live after the event, the largest first; of equals the one made earlier.
std::vector<LiveBlock> live_after(const MemoryLog& log, size_t event);

// "activations"; as reports call it.
std::string_view name_of(Use use);

// A group of live blocks: those of one use, and of one module in all layers of a list.
struct LiveShare {
  std::string module;  // "layer1.*.conv1"; empty outside any
  Use use = Use::temporary;
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t largest = 0;
  std::string what;  // the largest one: the op that made it, or the parameter's name
};

// The groups of what is live after the event, the largest first.
std::vector<LiveShare> live_shares(const Graph& graph, const MemoryLog& log, size_t event);

}  // namespace forerun
