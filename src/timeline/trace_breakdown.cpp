#include "timeline/trace_breakdown.h"

#include <algorithm>
#include <array>
#include <map>

#include "ingest/trace/communication_names.h"
#include "timeline/hta_breakdown.h"

namespace forerun {
namespace {

Interval interval_of(const Trace& trace, EventIndex i) { return {trace.events.start[i], trace.events.end(i)}; }

IdleCause cause_of(const Trace& trace, const TraceLinks& links, EventIndex work, const Interval& pause,
                   const BreakdownOptions& options) {
  const EventIndex call = links.launch[work];
  if (call != kNoIndex && trace.events.start[call] >= pause.begin) return IdleCause::host_wait;
  if (pause.end - pause.begin <= options.kernel_gap.value) return IdleCause::kernel_wait;
  return IdleCause::other;
}

void add(IdleCauses& causes, const IdlePause& pause) {
  const Nanoseconds length(pause.when.end - pause.when.begin);
  switch (pause.cause) {
    case IdleCause::host_wait: causes.host_wait += length; break;
    case IdleCause::kernel_wait: causes.kernel_wait += length; break;
    case IdleCause::other: causes.other += length; break;
  }
}

Intervals intervals_of(const Trace& trace, std::span<const EventIndex> work, std::span<const WorkKind> kinds,
                       WorkKind kind) {
  Intervals intervals;
  for (const EventIndex i : work) {
    if (kind == WorkKind::none || kinds[i] == kind) intervals.push_back(interval_of(trace, i));
  }
  return united(std::move(intervals));
}

std::vector<StreamUse> streams_of(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work,
                                  const BreakdownOptions& options) {
  std::map<int64_t, std::vector<EventIndex>> by_stream;
  for (const EventIndex i : work) by_stream[trace.lane_of(i).thread].push_back(i);
  std::vector<StreamUse> streams;
  for (const auto& [number, events] : by_stream) {
    StreamUse use;
    use.stream = number;
    use.events = static_cast<int64_t>(events.size());
    use.busy = length_of(intervals_of(trace, events, {}, WorkKind::none));
    for (const IdlePause& pause : pauses_of(trace, links, events, options)) add(use.idle, pause);
    streams.push_back(use);
  }
  return streams;
}

DeviceBreakdown break_down_device(const Trace& trace, const TraceLinks& links, std::span<const WorkKind> kinds,
                                  std::span<const EventIndex> work, const BreakdownOptions& options) {
  DeviceBreakdown result;
  result.events = static_cast<int64_t>(work.size());
  const auto of = [&](WorkKind kind) { return intervals_of(trace, work, kinds, kind); };
  const Intervals busy = of(WorkKind::none);
  const Intervals compute = of(WorkKind::compute);
  const Intervals communication = of(WorkKind::communication);
  const Intervals copy = of(WorkKind::copy);
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const EventIndex i : work) {
    const Interval interval = interval_of(trace, i);
    first = std::min(first, interval.begin);
    last = std::max(last, interval.end);
  }
  result.span = Nanoseconds(last - first);
  result.idle = result.span - length_of(busy);
  result.compute = length_of(compute);
  result.communication = length_of(communication);
  result.copy = length_of(copy);
  result.overlap = length_of(intersection(communication, compute));
  result.exposed_communication = result.communication - result.overlap;
  result.exposed_copy = length_of(busy) - result.compute - result.exposed_communication;
  for (const IdlePause& pause : pauses_of(trace, links, work, options)) add(result.causes, pause);
  result.streams = streams_of(trace, links, work, options);
  return result;
}

}  // namespace

std::string_view name_of(WorkKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "compute", "communication", "copy"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name_of(IdleCause cause) {
  constexpr std::array<std::string_view, 3> kNames = {"host wait", "kernel wait", "other"};
  return kNames[static_cast<size_t>(cause)];
}

double DeviceBreakdown::overlap_share() const {
  return communication.value == 0 ? 0.0 : static_cast<double>(overlap.value) / static_cast<double>(communication.value);
}

std::vector<WorkKind> work_kinds(const Trace& trace, const TraceLinks& links) {
  const std::vector<bool> communicates = communicating_kernels(trace);
  std::vector<bool> group_call(trace.names.size());
  for (size_t i = 0; i < trace.names.size(); ++i) group_call[i] = names_group_call(trace.names[NameId(i)]);
  const TraceEvents& events = trace.events;
  std::vector<WorkKind> kinds(trace.size(), WorkKind::none);
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (!is_device_work(events.kind[i])) continue;
    kinds[i] = WorkKind::copy;
    if (events.kind[i] != EventKind::kernel) continue;
    kinds[i] = WorkKind::compute;
    bool collective = events.collective[i] != kNoIndex || communicates[events.name[i].value];
    EventIndex around = links.launch[i] == kNoIndex ? kNoIndex : links.parent[links.launch[i]];
    for (; around != kNoIndex && !collective; around = links.parent[around]) {
      collective = group_call[events.name[around].value];
    }
    if (collective) kinds[i] = WorkKind::communication;
  }
  return kinds;
}

std::vector<EventIndex> kept_work(const Trace& trace, const TraceLinks& links, const Iterations& iterations,
                                  const BreakdownOptions& options) {
  if (options.like_hta) return work_like_hta(trace, links);
  int64_t until = INT64_MAX;
  if (options.drop_last_step && iterations.count() > 1) until = iterations.boundaries[iterations.count() - 1];
  std::vector<EventIndex> work;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (!is_device_work(trace.events.kind[i])) continue;
    const EventIndex call = links.launch[i];
    if (trace.events.start[call == kNoIndex ? i : call] < until) work.push_back(i);
  }
  return work;
}

std::vector<IdlePause> pauses_of(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work,
                                 const BreakdownOptions& options) {
  std::vector<IdlePause> pauses;
  int64_t busy_until = INT64_MIN;
  for (const EventIndex i : work) {
    const Interval interval = interval_of(trace, i);
    if (busy_until != INT64_MIN && interval.begin > busy_until) {
      const Interval pause{busy_until, interval.begin};
      pauses.push_back({pause, i, cause_of(trace, links, i, pause, options)});
    }
    busy_until = std::max(busy_until, interval.end);
  }
  return pauses;
}

std::vector<DeviceBreakdown> break_down(const Trace& trace, const TraceLinks& links, std::span<const WorkKind> kinds,
                                        std::span<const EventIndex> work, const BreakdownOptions& options) {
  if (options.like_hta) return break_down_like_hta(trace, links);
  std::map<int64_t, std::vector<EventIndex>> by_device;
  for (const EventIndex i : work) by_device[trace.lane_of(i).process].push_back(i);
  std::vector<DeviceBreakdown> devices;
  for (const auto& [number, events] : by_device) {
    devices.push_back(break_down_device(trace, links, kinds, events, options));
    devices.back().device = number;
  }
  return devices;
}

}  // namespace forerun
