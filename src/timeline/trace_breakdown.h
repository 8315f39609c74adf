// Where the time of a GPU went: computation, communication, copies, nothing; and why nothing.
//
// Source of the definitions: Holistic Trace Analysis. The span is that from the first to the last work on the device;
// time is idle where no stream works; computation is the time in which at least one kernel computes, whatever else runs
// beside it; all else is non-compute: communication or copies that no computation hides. Overlap is the share of
// communication time during which something computes. Differences to that tool are in docs/traces.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "ingest/trace/trace.h"
#include "ingest/trace/trace_links.h"
#include "timeline/iterations.h"
#include "timeline/trace_intervals.h"

namespace forerun {

enum class WorkKind : uint8_t { none, compute, communication, copy };  // copy: memcpy and memset
std::string_view name_of(WorkKind kind);

// What each event is as work of a GPU. Communication is told by its metadata, its kernel's name, or the process-group
// call around its launch.
std::vector<WorkKind> work_kinds(const Trace& trace, const TraceLinks& links);

struct BreakdownOptions {
  bool drop_last_step = false;  // leave out work launched in the last iteration
  bool like_hta = false;        // count as Holistic Trace Analysis does (timeline/hta_breakdown.h); the others are void
  Nanoseconds kernel_gap = Nanoseconds(5000);  // a pause up to this between work that was launched in time is the GPU's
};

// Why nothing ran: the host had not launched it yet; the pause between two kernels; anything else (a wait for an event,
// another stream, the network, memory).
struct IdleCauses {
  Nanoseconds host_wait, kernel_wait, other;
  [[nodiscard]] Nanoseconds total() const { return host_wait + kernel_wait + other; }
};

struct StreamUse {
  int64_t stream = 0;
  int64_t events = 0;
  Nanoseconds busy;
  IdleCauses idle;  // between the first and the last work of this stream
};

struct DeviceBreakdown {
  int64_t device = 0;
  int64_t events = 0;
  Nanoseconds span, idle;
  Nanoseconds compute, communication, copy;         // each by itself: they overlap one another
  Nanoseconds exposed_communication, exposed_copy;  // that no computation (nor communication) hides
  Nanoseconds overlap;                              // communication while something computes
  IdleCauses causes;
  std::vector<StreamUse> streams;

  [[nodiscard]] Nanoseconds busy() const { return span - idle; }
  [[nodiscard]] Nanoseconds non_compute() const { return span - idle - compute; }
  [[nodiscard]] double overlap_share() const;  // of communication; 0 where there is none
};

// The device work that the options keep, in order of start.
std::vector<EventIndex> kept_work(const Trace& trace, const TraceLinks& links, const Iterations& iterations,
                                  const BreakdownOptions& options);

// One entry per device, by number.
std::vector<DeviceBreakdown> break_down(const Trace& trace, const TraceLinks& links, std::span<const WorkKind> kinds,
                                        std::span<const EventIndex> work, const BreakdownOptions& options);

// When a device does nothing, with the event that ends the pause, and why.
enum class IdleCause : uint8_t { host_wait, kernel_wait, other };
std::string_view name_of(IdleCause cause);
struct IdlePause {
  Interval when;
  EventIndex ended_by = kNoIndex;
  IdleCause cause = IdleCause::other;
};
std::vector<IdlePause> pauses_of(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work,
                                 const BreakdownOptions& options);

}  // namespace forerun
