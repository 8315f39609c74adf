#include "ingest/trace/trace_links.h"

#include <algorithm>
#include <utility>

namespace forerun {
namespace {

// Finds an event by an id of the file. Ids mostly are dense, so a plain table serves; otherwise sorted pairs.
class IdIndex {
 public:
  void add(int64_t id, EventIndex event) { pairs_.emplace_back(id, event); }

  void close() {
    if (pairs_.empty()) return;
    const auto [least, most] = std::minmax_element(pairs_.begin(), pairs_.end());
    least_ = least->first;
    const auto range = static_cast<uint64_t>(most->first) - static_cast<uint64_t>(least_);
    if (range < 8 * pairs_.size() + 1024) {
      table_.assign(range + 1, kNoIndex);
      for (const auto& [id, event] : pairs_) {
        EventIndex& slot = table_[static_cast<uint64_t>(id) - static_cast<uint64_t>(least_)];
        if (slot == kNoIndex) slot = event;
      }
      pairs_ = {};
    } else {
      std::sort(pairs_.begin(), pairs_.end());
    }
  }

  // The first event added with the id.
  [[nodiscard]] EventIndex find(int64_t id) const {
    if (!table_.empty()) {
      const uint64_t offset = static_cast<uint64_t>(id) - static_cast<uint64_t>(least_);
      return id >= least_ && offset < table_.size() ? table_[offset] : kNoIndex;
    }
    const auto found = std::lower_bound(pairs_.begin(), pairs_.end(), std::pair(id, EventIndex{0}));
    return found != pairs_.end() && found->first == id ? found->second : kNoIndex;
  }

 private:
  std::vector<std::pair<int64_t, EventIndex>> pairs_;
  std::vector<EventIndex> table_;
  int64_t least_ = 0;
};

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
  links.launch.assign(events.size(), kNoIndex);
  IdIndex calls;
  for (EventIndex i = 0; i < events.size(); ++i) {
    if (is_cuda_call(events.kind[i]) && events.correlation[i] > 0) calls.add(events.correlation[i], i);
  }
  calls.close();
  links.launched_begin.assign(events.size() + 1, 0);
  for (EventIndex i = 0; i < events.size(); ++i) {
    const bool work = is_device_work(events.kind[i]);
    links.device_work += work ? 1 : 0;
    if ((!work && events.kind[i] != EventKind::sync) || events.correlation[i] <= 0) continue;
    const EventIndex call = calls.find(events.correlation[i]);
    links.launch[i] = call;
    if (call == kNoIndex || !work) continue;
    ++links.linked;
    ++links.launched_begin[call + 1];
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
  IdIndex ops;
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

TraceLinks link_events(const Trace& trace) {
  TraceLinks links;
  link_parents(trace, links);
  link_launches(trace, links);
  link_ops(trace, links);
  return links;
}

std::vector<std::vector<EventIndex>> events_by_lane(const Trace& trace) {
  std::vector<uint32_t> counts(trace.lanes.size(), 0);
  for (const LaneIndex lane : trace.events.lane) ++counts[lane];
  std::vector<std::vector<EventIndex>> lanes(trace.lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i].reserve(counts[i]);
  for (EventIndex i = 0; i < trace.size(); ++i) lanes[trace.events.lane[i]].push_back(i);
  return lanes;
}

}  // namespace forerun
