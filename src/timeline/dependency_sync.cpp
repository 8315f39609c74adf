// RankDependencies: which work the host, or another stream, waits for.
//
// Where the file has the tracer's own waits ("Stream Wait Event" with the stream and the record it waits for) these are
// taken. Otherwise: a device sync waits for everything launched before it; a stream sync for the stream whose last work
// ended while it waited, or else the one last copied on or used; a copy that outlasts its own work on the device is a
// blocking one; an event sync or a slow call for memory waits for the work that ended just before it returned. A stream
// that is told to wait is the one launched on next, and waits for what was last launched on the stream, among the
// others, whose work ended last before it began.
#include <algorithm>

#include "timeline/dependency_rank.h"

namespace forerun {
namespace {

// In nanoseconds, as everywhere.
constexpr int64_t kUsualSync = 2'000;
constexpr int64_t kReturns = 20'000;     // from the end of the awaited work to the end of the call
constexpr int64_t kSlowMemory = 20'000;  // a call for memory that takes longer may have waited

}  // namespace

const RankDependencies::Stream* RankDependencies::stream_numbered(int64_t device, int64_t number) const {
  const Stream* found = nullptr;
  for (const Stream& stream : streams_) {
    const TraceLane& lane = trace_.lanes[stream.lane];
    if (lane.thread != number) continue;
    if (found == nullptr || lane.process == device) found = &stream;
  }
  return found;
}

void RankDependencies::find_stream_waits() {
  std::vector<bool> told(trace_.size(), false);  // calls that a row of the tracer explains
  for (EventIndex i = 0; i < trace_.size(); ++i) {
    const EventKind kind = trace_.events.kind[i];
    if (is_cuda_call(kind) && call_kind_[trace_.events.name[i].value] == CallKind::record &&
        trace_.events.correlation[i] > 0) {
      records_.emplace(trace_.events.correlation[i], i);
    }
    if (kind == EventKind::sync && links_.launch[i] != kNoIndex) told[links_.launch[i]] = true;
  }
  for (EventIndex i = 0; i < trace_.size(); ++i) {
    if (trace_.events.kind[i] == EventKind::sync) told_stream_wait(i);
  }
  std::vector<EventIndex> pending;
  for (EventIndex i = 0; i < trace_.size(); ++i) {
    if (!is_cuda_call(trace_.events.kind[i]) || !task_[i].valid()) continue;
    if (call_kind_[trace_.events.name[i].value] == CallKind::wait_event && !told[i]) {
      pending.push_back(i);
    } else if (!pending.empty() && !links_.launched(i).empty()) {
      for (const EventIndex call : pending) infer_stream_wait(call, i);
      pending.clear();
    }
  }
}

void RankDependencies::told_stream_wait(EventIndex row) {
  if (trace_.events.detail[row] == kNoIndex) return;
  const TraceSync& sync = trace_.syncs[trace_.events.detail[row]];
  if (trace_.text(sync.kind).find("Stream Wait") == std::string::npos) return;
  const int64_t device = trace_.lane_of(row).process;
  const Stream* waits = stream_numbered(device, sync.stream);
  const Stream* awaited = stream_numbered(device, sync.wait_on_stream);
  if (waits == nullptr || awaited == nullptr || waits == awaited) return;
  const EventIndex call = links_.launch[row];
  const int64_t at = call == kNoIndex ? start(row) : start(call);
  const auto record = records_.find(sync.record_correlation);
  const EventIndex before = last_launched(*awaited, record == records_.end() ? at : start(record->second));
  const auto next = std::upper_bound(waits->launched.begin(), waits->launched.end(), at);
  if (before == kNoIndex || next == waits->launched.end()) return;
  const EventIndex after = waits->work[static_cast<size_t>(next - waits->launched.begin())];
  if (end(before) > start(after) + kDeviceClockSlack || before >= after) return;  // the file contradicts itself
  cross_.push_back({after, before});
  ++counts_.syncs_found;
}

void RankDependencies::infer_stream_wait(EventIndex call, EventIndex launch) {
  const EventIndex after = links_.launched(launch).front();
  if (!task_[after].valid()) return;
  Stream& waits = streams_[stream_of(after)];
  EventIndex best = kNoIndex;
  for (const Stream& stream : streams_) {
    if (stream.lane == waits.lane) continue;
    const EventIndex before = last_launched(stream, start(call));
    if (before == kNoIndex || end(before) > start(after) || before >= after) continue;
    const auto waited = waits.waited.find(stream_of(before));
    if (waited != waits.waited.end() && end(before) <= waited->second) continue;
    if (best == kNoIndex || end(before) > end(best)) best = before;
  }
  if (best == kNoIndex) return;
  waits.waited[stream_of(best)] = end(best);
  cross_.push_back({after, best});
  ++counts_.syncs_inferred;
}

std::vector<EventIndex> RankDependencies::all_streams_before(int64_t at) const {
  std::vector<EventIndex> work;
  for (const Stream& stream : streams_) {
    const EventIndex last = last_launched(stream, at);
    if (last != kNoIndex) work.push_back(last);
  }
  return work;
}

// Among what was launched last on each stream before the call: what ended last while it ran.
EventIndex RankDependencies::ended_during(EventIndex call) const {
  EventIndex found = kNoIndex;
  for (const EventIndex work : all_streams_before(start(call))) {
    const bool during = end(work) > start(call) && end(work) <= end(call) + kDeviceClockSlack;
    if (during && (found == kNoIndex || end(work) > end(found))) found = work;
  }
  return found;
}

// The work that the tracer's row about a wait of the host names; empty where it names none.
std::vector<EventIndex> RankDependencies::told_work(EventIndex row, EventIndex call) const {
  if (trace_.events.detail[row] == kNoIndex) return {};
  const TraceSync& sync = trace_.syncs[trace_.events.detail[row]];
  const std::string kind = trace_.text(sync.kind);
  const int64_t device = trace_.lane_of(row).process;
  if (kind.find("Context") != std::string::npos || kind.find("Device") != std::string::npos) {
    return all_streams_before(start(call));
  }
  const bool event = kind.find("Event") != std::string::npos;
  const Stream* stream = stream_numbered(device, event ? sync.wait_on_stream : sync.stream);
  if (stream == nullptr) return {};
  const auto record = records_.find(sync.record_correlation);
  const int64_t at = event && record != records_.end() ? start(record->second) : start(call);
  const EventIndex work = last_launched(*stream, at);
  return work == kNoIndex ? std::vector<EventIndex>() : std::vector<EventIndex>{work};
}

void RankDependencies::host_syncs() {
  std::unordered_map<EventIndex, EventIndex> rows;  // call -> the tracer's row about it
  for (EventIndex i = 0; i < trace_.size(); ++i) {
    if (trace_.events.kind[i] == EventKind::sync && links_.launch[i] != kNoIndex) rows.emplace(links_.launch[i], i);
  }
  EventIndex last_copy = kNoIndex, last_work = kNoIndex;
  for (EventIndex i = 0; i < trace_.size(); ++i) {
    if (!is_cuda_call(trace_.events.kind[i]) || !task_[i].valid()) continue;
    const CallKind kind = call_kind_[trace_.events.name[i].value];
    std::vector<EventIndex> work;
    if (kind == CallKind::copy && !links_.launched(i).empty()) {
      last_copy = links_.launched(i).back();
      if (end(last_copy) <= end(i) + kDeviceClockSlack && trace_.events.duration[i] > usual_call_) {
        hold_host(i, {last_copy}, usual_call_);
        ++counts_.syncs_inferred;
      }
    }
    if (!links_.launched(i).empty()) last_work = links_.launched(i).back();
    const bool syncs = kind >= CallKind::device_sync && kind <= CallKind::event_sync;
    const bool slow_memory = kind == CallKind::memory && trace_.events.duration[i] > kSlowMemory;
    if (!syncs && !slow_memory) continue;
    const auto row = rows.find(i);
    if (row != rows.end()) work = told_work(row->second, i);
    const bool told = !work.empty();
    if (work.empty() && kind == CallKind::device_sync) work = all_streams_before(start(i));
    if (work.empty()) {
      EventIndex found = ended_during(i);
      const bool strict = kind == CallKind::event_sync || kind == CallKind::memory;
      if (found != kNoIndex && strict && end(i) - end(found) > kReturns) found = kNoIndex;
      if (found == kNoIndex && kind == CallKind::stream_sync) found = last_copy != kNoIndex ? last_copy : last_work;
      if (found != kNoIndex) work.push_back(found);
    }
    if (work.empty()) continue;
    ++(told ? counts_.syncs_found : counts_.syncs_inferred);
    hold_host(i, work, kUsualSync);
  }
}

}  // namespace forerun
