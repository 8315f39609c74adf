// What an execution trace holds, as text, JSON and CSV.
#pragma once

#include <string>

#include "timeline/execution_summary.h"

namespace forerun {

std::string to_text(const ExecutionSummary& summary, size_t top);
std::string to_json(const ExecutionSummary& summary, size_t top);  // one object
std::string to_csv(const ExecutionTrace& trace);                   // a line a node

}  // namespace forerun
