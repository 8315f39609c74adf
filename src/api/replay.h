// Does a trace, simulated from durations and dependencies alone, take as long as it did?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/trace.h"
#include "base/result.h"
#include "ingest/trace/trace.h"
#include "report/replay.h"

namespace forerun {

struct ReplayHandlers {
  std::function<void(const ReplayRow&)> row;
  std::function<void(const Trace&)> read;     // after each file: what became of its events
  std::function<void(const Error&)> problem;  // of one file; the others go on
};

struct ReplayOptions {
  bool separately = false;  // ranks of one run are not replayed together
  bool usual_lags = false;  // DependencyOptions
};

// Files of one folder that name different ranks of one world and overlap in time are replayed together.
Status replay_traces(const std::vector<std::string>& files, const ReplayOptions& options,
                     const ReplayHandlers& handlers);

// The same of traces in memory: one per rank.
Result<ReplayRow> replay(std::span<const Trace> ranks, const ReplayOptions& options);

}  // namespace forerun
