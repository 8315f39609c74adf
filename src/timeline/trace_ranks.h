// Several ranks of one run side by side: how far their clocks are apart, and who keeps the others waiting.
//
// The k-th collective of a rank is matched with the k-th of the others where all ranks have the same sequence of them.
// Collectives end everywhere at once, so the median difference of their ends is the offset of a rank's clock; once that
// is taken out, the rank whose kernel begins last is the one that the others waited for. A reduction to one rank or a
// send and receive need not end together; the median forgives a minority of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ingest/trace/trace.h"
#include "timeline/trace_breakdown.h"

namespace forerun {

struct RankRow {
  int64_t rank = -1;
  std::string file;
  Nanoseconds clock_offset;  // of this rank's clock against the first one's
  bool aligned = false;      // the offset could be told
  int64_t collectives = 0;   // kernels of communication
  int64_t arrived_last = 0;  // of the matched collectives
  Nanoseconds kept_waiting;  // others, summed over collectives and ranks, beyond the second to last arrival
  Nanoseconds compute, communication, step;  // step: mean iteration
};

struct RankComparison {
  std::vector<RankRow> ranks;
  int64_t matched = 0;     // collectives found on all ranks
  int64_t straggler = -1;  // index into `ranks` of the rank that arrives last most often by far; -1: none stands out
};

// What of one rank is compared.
struct RankView {
  const Trace* trace = nullptr;
  std::span<const WorkKind> kinds;
  std::span<const EventIndex> work;
  const DeviceBreakdown* breakdown = nullptr;  // null where it has no device work
  Nanoseconds step;
};
RankComparison compare_ranks(std::span<const RankView> ranks);

}  // namespace forerun
