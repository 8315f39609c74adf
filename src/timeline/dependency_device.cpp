// RankDependencies, the device's side: what each kernel, copy and fill waited for.
//
// Four things can hold work back: its launch, the work before it on its stream, work of another stream that an event
// makes it wait for, and nothing at all. What came last decided, and its distance to the start is taken as measured; the
// others get the usual distance of the trace, or what was left where that is less.
#include <algorithm>

#include "base/statistics.h"
#include "timeline/dependency_rank.h"

namespace forerun {
namespace {

// In nanoseconds, as everywhere.
constexpr int64_t kUnexplained = 30'000;  // beyond it something else must have held the work back
constexpr int64_t kCoincidence = 10'000;  // from an end to the start that waited for it
constexpr int64_t kSlowLaunch = 20'000;   // a launch that takes longer may have waited
constexpr size_t kFullQueue = 900;        // pending work of a stream that makes launches wait (CUDA: about 1022)
constexpr size_t kSamples = 1 << 20;

int64_t median_or(std::vector<int64_t> values, int64_t otherwise) {
  return values.empty() ? otherwise : upper_median(std::move(values));
}

}  // namespace

void RankDependencies::collect_streams() {
  stream_of_lane_.assign(trace_.lanes.size(), SIZE_MAX);
  for (EventIndex i = 0; i < trace_.size(); ++i) {
    if (!task_[i].valid() || !is_device_work(trace_.events.kind[i])) continue;
    size_t& stream = stream_of_lane_[trace_.events.lane[i]];
    if (stream == SIZE_MAX) {
      stream = streams_.size();
      streams_.emplace_back().lane = trace_.events.lane[i];
    }
    Stream& into = streams_[stream];
    const int64_t before = into.launched.empty() ? INT64_MIN : into.launched.back();
    into.work.push_back(i);
    into.launched.push_back(std::max(before, launch_time(i)));
  }
}

EventIndex RankDependencies::last_launched(const Stream& stream, int64_t at) const {
  const auto after = std::upper_bound(stream.launched.begin(), stream.launched.end(), at);
  return after == stream.launched.begin() ? kNoIndex
                                          : stream.work[static_cast<size_t>(after - stream.launched.begin()) - 1];
}

// The usual distances: from launch to start on an idle stream, between two kernels on a busy one, and of a launch call.
void RankDependencies::measure_usual() {
  std::vector<int64_t> lags, gaps, calls;
  for (const Stream& stream : streams_) {
    for (size_t i = 1; i < stream.work.size() && lags.size() + gaps.size() < kSamples; ++i) {
      const EventIndex call = links_.launch[stream.work[i]];
      if (call == kNoIndex) continue;
      const int64_t from = start(stream.work[i]), before = end(stream.work[i - 1]);
      if (trace_.events.kind[stream.work[i]] == EventKind::kernel) calls.push_back(trace_.events.duration[call]);
      if (before <= start(call)) lags.push_back(from - start(call));
      if (before >= end(call) + kUnexplained && from >= before) gaps.push_back(from - before);
    }
  }
  usual_lag_ = median_or(std::move(lags), usual_lag_);
  usual_gap_ = std::min(median_or(std::move(gaps), usual_gap_), int64_t{2'000});
  usual_call_ = std::min(median_or(std::move(calls), usual_call_), kSlowLaunch);
  usual_crossing_ = usual_gap_;
  measure_usual_crossing();
}

// From the end of work to the start of what an event made wait for it, where nothing else held that back.
void RankDependencies::measure_usual_crossing() {
  std::vector<int64_t> crossings;
  for (const CrossWait& wait : cross_) {
    const std::vector<EventIndex>& work = streams_[stream_of(wait.after)].work;
    const auto here = std::lower_bound(work.begin(), work.end(), wait.after);
    const int64_t free = here == work.begin() ? INT64_MIN : end(*(here - 1));
    const int64_t lag = start(wait.after) - end(wait.before);
    const bool decided = end(wait.before) > std::max(free, launch_time(wait.after) + usual_lag_);
    if (decided && lag >= 0 && lag <= kUnexplained) crossings.push_back(lag);
  }
  usual_crossing_ = median_or(std::move(crossings), usual_crossing_);
}

int64_t RankDependencies::distance(int64_t own, int64_t usual, bool decided) const {
  const bool overlap = own < 0;
  if (!decided || overlap) return std::min(own, usual);
  return options_.usual_lags ? usual : own;
}

void RankDependencies::link_device() {
  std::sort(cross_.begin(), cross_.end());
  cross_.erase(std::unique(cross_.begin(), cross_.end()), cross_.end());
  std::vector<EventIndex> before(streams_.size(), kNoIndex);  // by stream: the work before
  std::vector<EventIndex> latest(streams_.size(), kNoIndex);  // by stream: what ends last so far
  std::vector<EventIndex> others;
  size_t next_cross = 0;
  for (EventIndex i = 0; i < trace_.size(); ++i) {
    if (!task_[i].valid() || !is_device_work(trace_.events.kind[i])) continue;
    others.clear();
    while (next_cross < cross_.size() && cross_[next_cross].after < i) ++next_cross;
    for (; next_cross < cross_.size() && cross_[next_cross].after == i; ++next_cross) {
      others.push_back(cross_[next_cross].before);
    }
    const size_t stream = stream_of(i);
    place(i, before[stream], latest[stream], others);
    before[stream] = i;
    if (latest[stream] == kNoIndex || end(i) >= end(latest[stream])) latest[stream] = i;
  }
}

void RankDependencies::place(EventIndex work, EventIndex before, EventIndex latest, std::vector<EventIndex>& others) {
  const int64_t from = start(work);
  EventIndex call = links_.launch[work];
  if (call != kNoIndex && (!task_[call].valid() || start(call) > from)) call = kNoIndex;  // cannot have launched it
  if (latest != before && latest != kNoIndex && end(latest) <= from && end(latest) > end(before)) {
    others.push_back(latest);  // ran beside `before` on the same stream
  }
  const int64_t launched = call == kNoIndex ? INT64_MIN : start(call) + usual_lag_;
  const int64_t stream_free = before == kNoIndex ? INT64_MIN : end(before);
  const auto others_end = [&] {
    int64_t last = INT64_MIN;
    for (const EventIndex other : others) last = std::max(last, end(other));
    return last;
  };
  const int64_t held = std::max({call == kNoIndex ? INT64_MIN : start(call), stream_free, others_end()});
  if (held != INT64_MIN && from - held > kUnexplained) {
    const EventIndex found = coincident(work);
    if (found != kNoIndex) {
      others.push_back(found);
      ++counts_.syncs_inferred;
    }
  }
  const int64_t last_other = others_end();
  enum class Decides { nothing, launch, stream, other } decides = Decides::nothing;
  if (call != kNoIndex && launched >= std::max(stream_free, last_other)) {
    decides = Decides::launch;
  } else if (before != kNoIndex && stream_free >= last_other) {
    decides = Decides::stream;
  } else if (last_other != INT64_MIN) {
    decides = Decides::other;
  }
  const TaskId held_back = entry(work);
  if (call != kNoIndex) {
    const int64_t lag = distance(from - start(call), usual_lag_, decides == Decides::launch);
    depend(held_back, task_[call], Anchor::start, lag);
  }
  if (before != kNoIndex) {
    const int64_t gap = distance(from - end(before), usual_gap_, decides == Decides::stream);
    out_.builder.set_gap(task_[before], Nanoseconds(gap));
  }
  for (const EventIndex other : others) {
    const bool decided = decides == Decides::other && end(other) == last_other;
    depend(held_back, task_[other], Anchor::end, distance(from - end(other), usual_crossing_, decided));
  }
  if (decides == Decides::nothing) depend(held_back, out_.beginning, Anchor::start, from);
}

// Work of another stream whose end explains why `work` began only then.
EventIndex RankDependencies::coincident(EventIndex work) const {
  const int64_t from = start(work);
  EventIndex found = kNoIndex;
  for (const Stream& stream : streams_) {
    if (stream.lane == trace_.events.lane[work]) continue;
    const auto after = std::lower_bound(stream.work.begin(), stream.work.end(), work);
    if (after == stream.work.begin()) continue;
    const EventIndex candidate = *(after - 1);
    const int64_t distance = from - end(candidate);
    if (distance < 0 || distance > kCoincidence) continue;
    if (found == kNoIndex || end(candidate) > end(found)) found = candidate;
  }
  return found;
}

// A stream takes about a thousand pieces of work; a launch beyond that waits until one has begun.
void RankDependencies::queue_waits() {
  for (const Stream& stream : streams_) {
    if (stream.work.size() < kFullQueue) continue;
    for (size_t i = kFullQueue; i < stream.work.size(); ++i) {
      const EventIndex call = links_.launch[stream.work[i]];
      if (call == kNoIndex || !task_[call].valid() ||
          trace_.events.duration[call] < std::max(kSlowLaunch, 3 * usual_call_))
        continue;
      const auto begun = std::upper_bound(stream.work.begin(), stream.work.end(), end(call),
                                          [&](int64_t at, EventIndex work) { return at < start(work); });
      const auto started = static_cast<size_t>(begun - stream.work.begin());
      if (started == 0 || started > i || i - started + 1 < kFullQueue) continue;
      const EventIndex freed = stream.work[started - 1];
      const TaskId waiting = task_[call];
      const TaskId next = next_on_thread(call);
      if (!next.valid() || start(freed) <= start(call)) continue;
      depend(next, entry(freed), Anchor::start, out_.start[next.value] - start(freed));
      out_.shorten(waiting, Nanoseconds(std::min(usual_call_, out_.builder.duration(waiting).value)));
      ++counts_.queue_waits;
    }
  }
}

}  // namespace forerun
