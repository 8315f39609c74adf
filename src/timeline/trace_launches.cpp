#include "timeline/trace_launches.h"

#include <algorithm>
#include <map>

#include "base/statistics.h"

namespace forerun {
namespace {

constexpr int64_t kSlowCall = 50'000;
constexpr int64_t kLateStart = 100'000;
constexpr int64_t kQueueLimit = 1024;

Nanoseconds duration_at(const std::vector<int64_t>& sorted, double share) {
  if (sorted.empty()) return {};
  return Nanoseconds(sorted_quantile_nearest(sorted, share));
}

QueueLength summed(const std::vector<QueuePoint>& points) {
  QueueLength queue;
  double weighted = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    queue.longest = std::max(queue.longest, points[i].length);
    if (i + 1 == points.size()) break;
    const int64_t time = points[i + 1].time - points[i].time;
    weighted += static_cast<double>(time) * static_cast<double>(points[i].length);
    if (points[i].length >= kQueueLimit) queue.at_limit += Nanoseconds(time);
    if (points[i].length == 0) queue.empty += Nanoseconds(time);
  }
  const int64_t span = points.empty() ? 0 : points.back().time - points.front().time;
  queue.mean = span > 0 ? weighted / static_cast<double>(span) : 0.0;
  return queue;
}

}  // namespace

LaunchStatistics launch_statistics(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work) {
  const TraceEvents& events = trace.events;
  LaunchStatistics result;
  std::vector<int64_t> calls, delays;
  for (const EventIndex i : work) {
    const EventIndex call = links.launch[i];
    if (call == kNoIndex) continue;
    ++result.launches;
    const auto together = links.launched(call);
    result.graph_kernels += together.size() > 1 ? 1 : 0;
    if (together.front() == i) {
      calls.push_back(events.duration[call]);
      result.slow_calls += events.duration[call] >= kSlowCall ? 1 : 0;
      result.call_total += Nanoseconds(events.duration[call]);
    }
    result.short_work += events.duration[i] < events.duration[call] ? 1 : 0;
    const int64_t delay = std::max<int64_t>(events.start[i] - events.end(call), 0);
    result.late_starts += delay >= kLateStart ? 1 : 0;
    delays.push_back(delay);
  }
  std::sort(calls.begin(), calls.end());
  std::sort(delays.begin(), delays.end());
  result.calls = static_cast<int64_t>(calls.size());
  result.call_median = duration_at(calls, 0.5);
  result.call_p90 = duration_at(calls, 0.9);
  result.delay_median = duration_at(delays, 0.5);
  result.delay_p90 = duration_at(delays, 0.9);
  result.delay_longest = duration_at(delays, 1.0);
  return result;
}

std::vector<QueuePoint> queue_of(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const EventIndex i : work) {
    const EventIndex call = links.launch[i];
    if (call == kNoIndex || trace.events.start[call] > trace.events.start[i]) continue;
    changes.emplace_back(trace.events.start[call], 1);
    changes.emplace_back(trace.events.start[i], -1);
  }
  std::sort(changes.begin(), changes.end());
  std::vector<QueuePoint> points;
  int64_t length = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    length += changes[i].second;
    if (i + 1 == changes.size() || changes[i + 1].first != changes[i].first)
      points.push_back({changes[i].first, length});
  }
  return points;
}

std::vector<QueueLength> queue_lengths(const Trace& trace, const TraceLinks& links, std::span<const EventIndex> work) {
  std::map<LaneIndex, std::vector<EventIndex>> by_lane;
  for (const EventIndex i : work) by_lane[trace.events.lane[i]].push_back(i);
  std::vector<QueueLength> queues;
  for (const auto& [lane, events] : by_lane) {
    queues.push_back(summed(queue_of(trace, links, events)));
    queues.back().device = trace.lanes[lane].process;
    queues.back().stream = trace.lanes[lane].thread;
  }
  std::sort(queues.begin(), queues.end(), [](const QueueLength& a, const QueueLength& b) {
    return std::pair(a.device, a.stream) < std::pair(b.device, b.stream);
  });
  return queues;
}

}  // namespace forerun
