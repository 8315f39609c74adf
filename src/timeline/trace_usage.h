// Which kernels, ops, modules and phases take the time of a trace.
//
// GPU time of an op, module or phase is that of the device work launched within it. Host time of an op is its own: that
// of ops nested in it is theirs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ingest/trace/trace.h"
#include "ingest/trace/trace_links.h"
#include "timeline/layers.h"
#include "timeline/trace_breakdown.h"

namespace forerun {

struct UsageRow {
  std::string name;
  int64_t count = 0;  // kernels; of ops: calls
  Nanoseconds gpu, host;
  Nanoseconds shortest, longest;   // of a kernel; zero for others
  WorkKind kind = WorkKind::none;  // of a kernel
};

struct Usage {  // each by GPU time, then host time, then name
  std::vector<UsageRow> kernels, ops, modules, phases;
};

Usage usage_of(const Trace& trace, const TraceLinks& links, const EventLayers& layers, std::span<const WorkKind> kinds,
               std::span<const EventIndex> work);

}  // namespace forerun
