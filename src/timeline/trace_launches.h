// How the host feeds the GPU: what launches cost, how long work waits, how much is queued.
//
// Source: the launch statistics and queue length of Holistic Trace Analysis. Work is queued from the start of the call
// that launched it until it begins.
#pragma once

#include <span>
#include <vector>

#include "ingest/trace/trace.h"
#include "ingest/trace/trace_links.h"
#include "timeline/trace_intervals.h"

namespace forerun {

struct LaunchStatistics {
  int64_t launches = 0;       // work with a launch in the trace
  int64_t calls = 0;          // calls that launched something
  int64_t graph_kernels = 0;  // work that shares its call with other work (CUDA graphs)
  int64_t short_work = 0;     // shorter on the GPU than its call on the host
  int64_t slow_calls = 0;     // calls of 50 us or more
  int64_t late_starts = 0;    // work that began 100 us or more after its call returned
  Nanoseconds call_median, call_p90, call_total;
  Nanoseconds delay_median, delay_p90, delay_longest;  // from the end of the call to the beginning of the work
};

struct QueueLength {
  int64_t device = 0, stream = 0;
  int64_t longest = 0;
  double mean = 0;       // over the time from the first launch to the last start
  Nanoseconds at_limit;  // with 1024 or more queued, where launching begins to block
  Nanoseconds empty;     // with nothing queued
};

LaunchStatistics launch_statistics(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work);
std::vector<QueueLength> queue_lengths(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work);

// The length of one stream's queue over time: a point at each change. `work` is that of the stream.
struct QueuePoint {
  int64_t time = 0;
  int64_t length = 0;
};
std::vector<QueuePoint> queue_of(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work);

}  // namespace forerun
