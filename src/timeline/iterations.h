// Where the iterations of a trace begin and end, on the host thread that drives the training.
//
// Looked for in this order: the profiler's step marks ("ProfilerStep#3"); the optimizer's marks ("Optimizer.step#..."),
// each ending an iteration where there are two or more; a sequence of outermost ops that repeats; and where there is
// nothing of this the whole trace as one iteration, the work of the GPU included.
#pragma once

#include <string_view>
#include <vector>

#include "ingest/trace/trace.h"
#include "ingest/trace/trace_links.h"

namespace forerun {

enum class IterationSource : uint8_t { profiler_steps, optimizer_steps, repeated_ops, whole_trace };
std::string_view name_of(IterationSource source);

struct Iterations {
  IterationSource source = IterationSource::whole_trace;
  LaneIndex lane = kNoIndex;        // the driving host thread; kNoIndex where the trace has no host events
  std::vector<int64_t> boundaries;  // one more than iterations, ascending, on the trace's clock
  bool to_the_end = false;          // the last iteration lasts until everything has ended, on any lane

  [[nodiscard]] size_t count() const { return boundaries.empty() ? 0 : boundaries.size() - 1; }
};

Iterations find_iterations(const Trace& trace, const TraceLinks& links);

// Host threads that run code. Left out: those of marks that span asynchronous work ("nccl:all_reduce" on a thread of its
// own), which overlap instead of nesting.
std::vector<bool> running_threads(const Trace& trace);

}  // namespace forerun
