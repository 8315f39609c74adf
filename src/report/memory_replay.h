// MemoryReplayRow: how near the simulated allocator comes to a recorded one, for one run; as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.h"
#include "memory/trace_replay.h"

namespace forerun {

// One peak, simulated and measured.
struct PeakPair {
  Bytes simulated;
  Bytes measured;
  [[nodiscard]] bool exact() const { return simulated == measured; }
  [[nodiscard]] double error() const;  // |simulated - measured| / measured
};

struct MemoryReplayRow {
  std::string id;
  std::string family;
  PeakPair requested, allocated, reserved;
  TraceReplay replay;
};

std::string replay_heading();
std::string to_text(const MemoryReplayRow& row);                // one line
std::string to_json(const MemoryReplayRow& row);                // one line
std::string to_text(const std::vector<MemoryReplayRow>& rows);  // the totals
std::string to_json(const std::vector<MemoryReplayRow>& rows);  // the totals, one line

}  // namespace forerun
