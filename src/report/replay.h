// ReplayRows as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "api/replay.h"

namespace forerun {

std::string replay_header();
std::string to_text(const ReplayRow& row);                // one line
std::string to_json(const ReplayRow& row);                // one line
std::string to_text(const std::vector<ReplayRow>& rows);  // behind the lines: the totals, and what to make of them

}  // namespace forerun
