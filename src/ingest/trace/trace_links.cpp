#include "ingest/trace/trace_links.h"

#include "ingest/trace/events_by_id.h"

namespace forerun {
namespace {

// Nesting on each host thread: rows stand in order of start, so the open events of a thread form a stack.
void link_parents(const Trace& trace, TraceLinks& links) {
  const TraceEvents& events = trace.events;
  links.parent.assign(events.size(), kNoIndex);
  std::vector<EventIndex> innermost(trace.lanes.size(), kNoIndex);
  for (EventIndex i = 0; i < events.size(); ++i) {
    if (!is_host(events.kind[i])) continue;
    EventIndex& top = innermost[events.lane[i]];
    while (top != kNoIndex && events.end(top) <= events.start[i]) top = links.parent[top];
    links.parent[i] = top;
    top = i;
  }
}

void link_launches(const Trace& trace, TraceLinks& links) {
  const TraceEvents& events = trace.events;
  links.launch = launches_of(trace);
  links.launched_begin.assign(events.size() + 1, 0);
  for (EventIndex i = 0; i < events.size(); ++i) {
    if (!is_device_work(events.kind[i])) continue;
    ++links.device_work;
    if (links.launch[i] == kNoIndex) continue;
    ++links.linked;
    ++links.launched_begin[links.launch[i] + 1];
  }
  for (size_t i = 0; i < events.size(); ++i) links.launched_begin[i + 1] += links.launched_begin[i];
  links.launched_list.resize(static_cast<size_t>(links.linked));
  std::vector<uint32_t> next(links.launched_begin.begin(), links.launched_begin.end() - 1);
  for (EventIndex i = 0; i < events.size(); ++i) {
    const EventIndex call = links.launch[i];
    if (call != kNoIndex && is_device_work(events.kind[i])) links.launched_list[next[call]++] = i;
  }
}

// A call belongs to the op around it; one outside any op, and device work without a call, to the op of its external id.
// Files up to 2022 write the correlation id in place of the external id: those say nothing.
void link_ops(const Trace& trace, TraceLinks& links) {
  const TraceEvents& events = trace.events;
  links.op.assign(events.size(), kNoIndex);
  std::vector<EventIndex> around(events.size(), kNoIndex);  // host events: the innermost op around it, or itself
  EventsById ops;
  for (EventIndex i = 0; i < events.size(); ++i) {
    if (!is_host(events.kind[i])) continue;
    if (events.kind[i] == EventKind::op) {
      around[i] = i;
      if (events.external_id[i] > 0) ops.add(events.external_id[i], i);
    } else if (links.parent[i] != kNoIndex) {
      around[i] = around[links.parent[i]];
    }
  }
  ops.close();
  const auto by_external_id = [&](EventIndex i) {
    const int64_t id = events.external_id[i];
    return id > 0 && id != events.correlation[i] ? ops.find(id) : kNoIndex;
  };
  for (EventIndex i = 0; i < events.size(); ++i) {
    if (is_cuda_call(events.kind[i])) links.op[i] = around[i] != kNoIndex ? around[i] : by_external_id(i);
  }
  for (EventIndex i = 0; i < events.size(); ++i) {
    if (!is_device_work(events.kind[i])) continue;
    const EventIndex call = links.launch[i];
    links.op[i] = call != kNoIndex ? links.op[call] : by_external_id(i);
  }
}

}  // namespace

std::vector<EventIndex> launches_of(const Trace& trace) {
  const TraceEvents& events = trace.events;
  std::vector<EventIndex> launch(events.size(), kNoIndex);
  EventsById calls;
  for (EventIndex i = 0; i < events.size(); ++i) {
    if (is_cuda_call(events.kind[i]) && events.correlation[i] > 0) calls.add(events.correlation[i], i);
  }
  calls.close();
  for (EventIndex i = 0; i < events.size(); ++i) {
    if (!is_device_work(events.kind[i]) && events.kind[i] != EventKind::sync) continue;
    if (events.correlation[i] > 0) launch[i] = calls.find(events.correlation[i]);
  }
  return launch;
}

TraceLinks link_events(const Trace& trace) {
  TraceLinks links;
  link_parents(trace, links);
  link_launches(trace, links);
  link_ops(trace, links);
  return links;
}

std::vector<std::vector<EventIndex>> events_by_lane(const Trace& trace) {
  std::vector<uint32_t> counts(trace.lanes.size(), 0);
  for (EventIndex i = 0; i < trace.size(); ++i) ++counts[trace.events.lane[i]];
  std::vector<std::vector<EventIndex>> lanes(trace.lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i].reserve(counts[i]);
  for (EventIndex i = 0; i < trace.size(); ++i) lanes[trace.events.lane[i]].push_back(i);
  return lanes;
}

}  // namespace forerun
