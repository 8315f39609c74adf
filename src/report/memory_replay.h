// MemoryReplayRows as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "api/memory_replay.h"

namespace forerun {

std::string replay_heading();
std::string to_text(const MemoryReplayRow& row);                // one line
std::string to_json(const MemoryReplayRow& row);                // one line
std::string to_text(const std::vector<MemoryReplayRow>& rows);  // the totals
std::string to_json(const std::vector<MemoryReplayRow>& rows);  // the totals, one line

}  // namespace forerun
