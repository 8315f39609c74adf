// Links between the events of a trace that the file gives only as shared ids and nesting: what encloses what on a host
// thread, which call launched which device work, and which op that work belongs to.
//
// Launches are joined by correlation id, never by flow arrows. Device work without a call in the recorded window keeps
// no launch; the kernels of a CUDA graph share the one call that launched the graph.
#pragma once

#include <span>
#include <vector>

#include "ingest/trace/trace.h"

namespace forerun {

struct TraceLinks {
  std::vector<EventIndex> parent;  // host events: the innermost event of the same thread around it; else kNoIndex
  std::vector<EventIndex> launch;  // device work and syncs: the CUDA call of the same correlation; else kNoIndex
  std::vector<EventIndex> op;      // CUDA calls and device work: the innermost op around the call; else kNoIndex

  // Device work launched by a call, in order of start.
  [[nodiscard]] std::span<const EventIndex> launched(EventIndex call) const {
    return std::span(launched_list).subspan(launched_begin[call], launched_begin[call + 1] - launched_begin[call]);
  }
  std::vector<uint32_t> launched_begin;  // per event, and one more
  std::vector<EventIndex> launched_list;

  int64_t device_work = 0;  // kernels, copies and fills
  int64_t linked = 0;       // of them, with a launch
};

TraceLinks link_events(const Trace& trace);
// `launch` of it alone.
std::vector<EventIndex> launches_of(const Trace& trace);

// The events of each lane, in order of start.
std::vector<std::vector<EventIndex>> events_by_lane(const Trace& trace);

}  // namespace forerun
