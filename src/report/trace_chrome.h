// An annotated Chrome trace of one or several ranks, for Perfetto or chrome://tracing.
//
// Beside the events of the files it shows iterations, idle time with its cause, the critical path and the queue of each
// stream; ranks are shifted to one clock. Slices of a track never overlap without nesting: what would (kernels on one
// stream that overlap, asynchronous marks) goes to a further track of the same name.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "timeline/trace_analysis.h"

namespace forerun {

struct ChromeCounts {
  int64_t slices = 0, arrows = 0, tracks = 0;
  int64_t left_out = 0;  // slices that overlap too many others
};

// Compressed where the path ends in .gz or .zst.
Result<ChromeCounts> write_chrome_trace(std::span<const Trace> ranks, const TraceAnalysis& analysis,
                                        const BreakdownOptions& options, const std::string& path);

}  // namespace forerun
