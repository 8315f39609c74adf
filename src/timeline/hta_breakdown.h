// Where the time of a GPU went, counted as Holistic Trace Analysis 0.5.0 counts it, so that its tables can be compared.
//
// What it does otherwise than trace_breakdown.h: times are whole microseconds of the file's clock, starts rounded up and
// ends down, so that work of less than one becomes negative; only work launched before the last of at least two
// ProfilerStep marks counts; waits that the tracer recorded on a stream count as busy; kernels named nccl...Kernel
// communicate and no others; devices are not told apart. The idle time of a stream is summed over the distances from each
// work's end to the next one's start, negative ones too, and is kernel wait below 30 us.
// Left out: work without a launch in the trace is there judged by the time of the file's first event.
#pragma once

#include <vector>

#include "timeline/trace_breakdown.h"

namespace forerun {

// The device work that counts, in order of start.
std::vector<EventIndex> work_like_hta(const Trace& trace, const TraceLinks& links);

// One entry, or none where no work counts. The causes of the device's idle time have no counterpart there: they are
// told as those of one stream with all the work.
std::vector<DeviceBreakdown> break_down_like_hta(const Trace& trace, const TraceLinks& links);

}  // namespace forerun
