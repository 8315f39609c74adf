#include "timeline/iterations.h"

#include <algorithm>
#include <array>

#include "ingest/trace/communication_names.h"

namespace forerun {
namespace {

// The names that contain `part`, by NameId.
std::vector<bool> names_with(const Trace& trace, std::string_view part) {
  std::vector<bool> has(trace.names.size());
  for (size_t i = 0; i < has.size(); ++i) has[i] = trace.names[NameId(i)].find(part) != std::string::npos;
  return has;
}

std::vector<EventIndex> host_events_named(const Trace& trace, const std::vector<bool>& running, std::string_view part) {
  const std::vector<bool> named = names_with(trace, part);
  std::vector<EventIndex> found;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    const EventKind kind = trace.events.kind[i];
    const bool mark = kind == EventKind::annotation || kind == EventKind::op;
    if (mark && running[trace.events.lane[i]] && named[trace.events.name[i].value]) found.push_back(i);
  }
  return found;
}

// Only the events of the lane that has most of them, without those within another of them.
void keep_one_lane(const Trace& trace, std::vector<EventIndex>& marks) {
  std::vector<size_t> counts(trace.lanes.size(), 0);
  for (const EventIndex mark : marks) ++counts[trace.events.lane[mark]];
  const auto lane = static_cast<LaneIndex>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  int64_t end = INT64_MIN;
  std::erase_if(marks, [&](EventIndex mark) {
    if (trace.events.lane[mark] != lane || trace.events.start[mark] < end) return true;
    end = trace.events.end(mark);
    return false;
  });
}

// The thread with most events; those of the autograd engine's threads count little, as they only follow.
LaneIndex busiest_lane(const Trace& trace, const std::vector<bool>& running) {
  const std::vector<bool> engine = names_with(trace, "autograd::engine::evaluate_function");
  std::vector<size_t> counts(trace.lanes.size(), 0);
  std::vector<bool> follows(trace.lanes.size(), false);
  for (EventIndex i = 0; i < trace.size(); ++i) {
    const LaneIndex lane = trace.events.lane[i];
    if (!is_host(trace.events.kind[i]) || !running[lane]) continue;
    counts[lane] += 1'000'000;
    follows[lane] = follows[lane] || engine[trace.events.name[i].value];
  }
  for (size_t lane = 0; lane < counts.size(); ++lane) {
    if (follows[lane]) counts[lane] /= 1'000'000;
  }
  const auto most = std::max_element(counts.begin(), counts.end());
  return most == counts.end() || *most == 0 ? kNoIndex : static_cast<LaneIndex>(most - counts.begin());
}

// Starts of the repetitions of the shortest sequence of outermost ops that the lane's ops consist of, after whatever
// comes first; empty where nothing repeats. The last repetition ends with its last op.
std::vector<int64_t> repetitions(const Trace& trace, const TraceLinks& links, LaneIndex lane) {
  std::vector<EventIndex> ops;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (trace.events.lane[i] == lane && trace.events.kind[i] == EventKind::op && links.parent[i] == kNoIndex) {
      ops.push_back(i);
    }
  }
  constexpr size_t kFewestOps = 4;
  if (ops.size() < 2 * kFewestOps) return {};
  // Read backwards, the failure function of Knuth, Morris and Pratt gives the period of what stands at the end.
  const size_t count = ops.size();
  const auto name = [&](size_t i) { return trace.events.name[ops[count - 1 - i]]; };
  std::vector<size_t> border(count, 0);
  size_t best_period = 0, best_length = 0;
  for (size_t i = 1, k = 0; i < count; ++i) {
    while (k > 0 && name(i) != name(k)) k = border[k - 1];
    if (name(i) == name(k)) ++k;
    border[i] = k;
    const size_t period = i + 1 - k;
    if (period >= kFewestOps && i + 1 >= 2 * period) {
      best_period = period;
      best_length = i + 1;
    }
  }
  if (best_period == 0) return {};
  const size_t times = best_length / best_period;
  std::vector<int64_t> starts;
  for (size_t i = count - times * best_period; i < count; i += best_period)
    starts.push_back(trace.events.start[ops[i]]);
  starts.push_back(trace.events.end(ops.back()));
  return starts;
}

}  // namespace

std::string_view name_of(IterationSource source) {
  constexpr std::array<std::string_view, 4> kNames = {"profiler steps", "optimizer steps", "repeated ops",
                                                      "whole trace"};
  return kNames[static_cast<size_t>(source)];
}

std::vector<bool> running_threads(const Trace& trace) {
  std::vector<bool> running(trace.lanes.size(), false);
  for (EventIndex i = 0; i < trace.size(); ++i) {
    const EventKind kind = trace.events.kind[i];
    if (!is_host(kind) || trace.lane_of(i).kind != TraceLane::Kind::host_thread) continue;
    if (kind == EventKind::overhead || (kind == EventKind::annotation && names_group_call(trace.name(i)))) continue;
    running[trace.events.lane[i]] = true;
  }
  return running;
}

Iterations find_iterations(const Trace& trace, const TraceLinks& links) {
  Iterations found;
  const std::vector<bool> running = running_threads(trace);
  std::vector<EventIndex> marks = host_events_named(trace, running, "ProfilerStep");
  keep_one_lane(trace, marks);
  if (!marks.empty()) {
    found.source = IterationSource::profiler_steps;
    for (const EventIndex mark : marks) found.boundaries.push_back(trace.events.start[mark]);
    found.boundaries.push_back(std::max(found.boundaries.back(), trace.events.end(marks.back())));
    found.lane = trace.events.lane[marks.front()];
    return found;
  }
  marks = host_events_named(trace, running, "Optimizer.step");
  keep_one_lane(trace, marks);
  if (!marks.empty()) found.lane = trace.events.lane[marks.front()];
  if (marks.size() >= 2) {
    found.source = IterationSource::optimizer_steps;
    for (const EventIndex mark : marks) found.boundaries.push_back(trace.events.start[mark]);
    return found;
  }
  if (found.lane == kNoIndex) found.lane = busiest_lane(trace, running);
  if (marks.empty() && found.lane != kNoIndex) found.boundaries = repetitions(trace, links, found.lane);
  if (!found.boundaries.empty()) {
    found.source = IterationSource::repeated_ops;
    return found;
  }
  found.source = marks.empty() ? IterationSource::whole_trace : IterationSource::optimizer_steps;
  found.to_the_end = true;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    const bool host = is_host(trace.events.kind[i]) && running[trace.events.lane[i]];
    if (!host && !is_device_work(trace.events.kind[i])) continue;
    if (host && trace.events.kind[i] == EventKind::overhead) continue;
    first = std::min(first, trace.events.start[i]);
    last = std::max(last, trace.events.end(i));
  }
  if (first <= last) found.boundaries = {first, last};
  return found;
}

}  // namespace forerun
