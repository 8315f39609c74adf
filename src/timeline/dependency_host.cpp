// RankDependencies, the host's side: one task per event, pieces of nested events one after the other, what the host waits
// for, and how threads take turns.
#include <algorithm>
#include <array>

#include "ingest/trace/communication_names.h"
#include "timeline/dependency_rank.h"

namespace forerun {
namespace {

// In nanoseconds, as everywhere.
constexpr int64_t kHandOverSlack = 200'000;  // main thread's own time around the other's turn
constexpr int64_t kTurn = 50'000;            // shorter turns are worth waiting for only if nothing else is

bool has_part(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

std::vector<EventIndex> communications_of(const Trace& trace) {
  const std::vector<bool> named = communicating_kernels(trace);
  std::vector<EventIndex> kernels;
  for (EventIndex i = 0; i < trace.size(); ++i) {
    if (trace.events.kind[i] != EventKind::kernel) continue;
    if (named[trace.events.name[i].value] || trace.events.collective[i] != kNoIndex) kernels.push_back(i);
  }
  return kernels;
}

TaskId GraphAssembly::add(const Task& task, int64_t from) {
  start.push_back(from);
  return builder.add(task);
}

int64_t GraphAssembly::end(TaskId id) const {
  const auto measured = measured_ends_.find(id.value);
  return measured == measured_ends_.end() ? start[id.value] + builder.duration(id).value : measured->second;
}

void GraphAssembly::shorten(TaskId id, Nanoseconds duration) {
  measured_ends_.try_emplace(id.value, end(id));
  builder.set_duration(id, duration);
}

RankDependencies::RankDependencies(const Trace& trace, int32_t rank, int64_t origin, bool rendezvous,
                                   const DependencyOptions& options, GraphAssembly& assembly)
    : trace_(trace), rank_(rank), origin_(origin), rendezvous_(rendezvous), options_(options), out_(assembly) {}

void RankDependencies::build() {
  links_ = link_events(trace_);
  iterations_ = find_iterations(trace_, links_);
  layers_ = map_layers(trace_, links_, iterations_);
  links_.parent = {};  // of a large trace, every column counts
  links_.op = {};
  running_ = running_threads(trace_);
  name_calls();
  communications_ = communications_of(trace_);
  communicates_.assign(trace_.size(), false);
  for (const EventIndex kernel : communications_) communicates_[kernel] = true;
  add_lanes();
  add_tasks();
  layers_ = {};
  close_lanes();
  collect_streams();
  find_stream_waits();
  measure_usual();
  link_device();
  host_syncs();
  queue_waits();
  hand_over_all();
  counts_.device_work = links_.device_work;
  counts_.linked = links_.linked;
}

void RankDependencies::name_calls() {
  constexpr std::array<std::pair<std::string_view, CallKind>, 13> kParts = {{
      {"DeviceSynchronize", CallKind::device_sync},
      {"CtxSynchronize", CallKind::device_sync},
      {"StreamSynchronize", CallKind::stream_sync},
      {"EventSynchronize", CallKind::event_sync},
      {"StreamWaitEvent", CallKind::wait_event},
      {"EventRecord", CallKind::record},
      {"Memcpy", CallKind::copy},
      {"Malloc", CallKind::memory},
      {"MemAlloc", CallKind::memory},
      {"HostAlloc", CallKind::memory},
      {"HostRegister", CallKind::memory},
      {"Free", CallKind::memory},
      {"MemUnmap", CallKind::memory},
  }};
  name_map_.assign(trace_.names.size() + layers_.names.size(), NameId());
  call_kind_.assign(trace_.names.size(), CallKind::other);
  for (size_t i = 0; i < trace_.names.size(); ++i) {
    const std::string& text = trace_.names[NameId(i)];
    for (const auto& [part, kind] : kParts) {
      if (!has_part(text, part)) continue;
      call_kind_[i] = kind;
      break;
    }
  }
}

void RankDependencies::add_lanes() {
  lane_.assign(trace_.lanes.size(), LaneId());
  open_.assign(trace_.lanes.size(), OpenTask());
  threads_.resize(trace_.lanes.size());
  for (size_t i = 0; i < trace_.lanes.size(); ++i) {
    const TraceLane& lane = trace_.lanes[i];
    const bool host = lane.kind == TraceLane::Kind::host_thread && running_[i];
    if (!host && lane.kind != TraceLane::Kind::gpu_stream) continue;
    Lane made;
    made.kind = host ? LaneKind::host_thread : LaneKind::gpu_stream;
    made.rank = rank_;
    made.number = lane.thread;
    made.name = (host ? "thread " : "stream ") + std::to_string(lane.thread);
    lane_[i] = out_.builder.add_lane(std::move(made));
  }
}

NameId RankDependencies::name(NameId of_trace) {
  if (!of_trace.valid()) return {};
  NameId& known = name_map_[of_trace.value];
  if (!known.valid()) {
    const size_t own = trace_.names.size();
    known = out_.names->intern(of_trace.value < own ? trace_.names[of_trace] : layers_.names[of_trace.value - own]);
  }
  return known;
}

Task RankDependencies::task_of(EventIndex i, TaskKind kind) {
  Task task;
  task.kind = kind;
  task.lane = lane_[trace_.events.lane[i]];
  task.phase = layers_.phase[i];
  task.name = name(trace_.events.name[i]);
  const EventIndex outer = layers_.outer_op[i];
  task.op = outer == kNoIndex ? NameId() : name(trace_.events.name[outer]);
  task.op_instance = outer;
  task.module = name(layers_.layer[i]);
  task.event = i;
  return task;
}

// Appends to a host thread: the task before it lasts until here at the most, and its gap until here.
void RankDependencies::add_host(LaneIndex lane, const Task& task, int64_t from, int64_t to) {
  OpenTask& open = open_[lane];
  const TaskId added = out_.add(task, from);
  if (open.task.valid()) {
    const int64_t until = std::max(open.start, std::min(open.end, from));
    out_.builder.set_duration(open.task, Nanoseconds(until - open.start));
    out_.builder.set_gap(open.task, Nanoseconds(from - until));
  } else if (lane == iterations_.lane) {
    depend(added, out_.beginning, Anchor::start, from);
  }
  open = {added, from, to};
  threads_[lane].push_back(added);
}

void RankDependencies::add_mark(int64_t at, const char* text) {
  Task mark;
  mark.kind = TaskKind::mark;
  mark.lane = lane_[iterations_.lane];
  mark.name = out_.names->intern(text);
  mark.op_instance = kNoLink;
  mark.event = kNoLink;
  add_host(iterations_.lane, mark, at, at);
  steps_.marks.push_back(threads_[iterations_.lane].back());
  steps_.measured.emplace_back(at);
}

void RankDependencies::add_device(EventIndex i) {
  const EventKind kind = trace_.events.kind[i];
  const bool communication = communicates_[i];
  TaskKind as = kind == EventKind::kernel ? TaskKind::kernel : TaskKind::memset;
  if (kind == EventKind::copy) as = TaskKind::memcpy;
  if (communication) as = TaskKind::communication;
  Task task = task_of(i, as);
  if (communication && rendezvous_) arrivals_.emplace(i, out_.add(task, start(i)));
  task.duration = Nanoseconds(trace_.events.duration[i]);
  task_[i] = out_.add(task, start(i));
}

void RankDependencies::add_tasks() {
  task_.assign(trace_.size(), TaskId());
  // Where the last iteration ends with everything, a mark would keep the wait for the device as a gap of the host.
  size_t boundaries = iterations_.lane == kNoIndex ? 0 : iterations_.boundaries.size();
  if (iterations_.to_the_end && boundaries > 0) --boundaries;
  size_t boundary = 0;
  const auto add_marks_until = [&](int64_t at) {
    for (; boundary < boundaries; ++boundary) {
      if (iterations_.boundaries[boundary] - origin_ > at) return;
      add_mark(iterations_.boundaries[boundary] - origin_, "step");
    }
  };
  steps_.source = iterations_.source;
  steps_.to_the_end = iterations_.to_the_end;
  int64_t last = 0;
  for (EventIndex i = 0; i < trace_.size(); ++i) {
    const EventKind kind = trace_.events.kind[i];
    const LaneIndex lane = trace_.events.lane[i];
    if (!lane_[lane].valid()) continue;
    if (is_device_work(kind)) {
      add_device(i);
    } else if (is_host(kind) && kind != EventKind::overhead) {
      if (lane == iterations_.lane) add_marks_until(start(i));
      TaskKind as = TaskKind::host_op;
      if (is_cuda_call(kind)) {
        const CallKind call = call_kind_[trace_.events.name[i].value];
        const bool waits = call >= CallKind::device_sync && call <= CallKind::event_sync;
        as = !links_.launched(i).empty() ? TaskKind::launch : waits ? TaskKind::sync : TaskKind::runtime;
      } else if (layers_.phase[i] == StepPhase::data) {
        as = TaskKind::data_loading;
      }
      add_host(lane, task_of(i, as), start(i), end(i));
      task_[i] = threads_[lane].back();
    } else {
      continue;
    }
    last = std::max(last, end(i));
  }
  add_marks_until(INT64_MAX);
  steps_.measured_end = Nanoseconds(last);
}

// The last event of each thread keeps its whole duration, and something stands behind it that can wait.
void RankDependencies::close_lanes() {
  for (LaneIndex lane = 0; lane < threads_.size(); ++lane) {
    if (threads_[lane].empty()) continue;
    Task mark;
    mark.kind = TaskKind::mark;
    mark.lane = lane_[lane];
    mark.name = out_.names->intern("end of thread");
    mark.op_instance = kNoLink;
    mark.event = kNoLink;
    const int64_t at = std::max(open_[lane].start, open_[lane].end);
    add_host(lane, mark, at, at);
  }
}

// The host returned from `call` when `work` had ended: what comes next waits for it. `usual` is what the call costs
// where there is nothing to wait for.
void RankDependencies::hold_host(EventIndex call, const std::vector<EventIndex>& work, int64_t usual) {
  const TaskId waiting = task_[call];
  const TaskId next = next_on_thread(call);
  if (!waiting.valid() || !next.valid()) return;
  const int64_t resumed = out_.start[next.value];
  int64_t latest = INT64_MIN;
  const auto awaited = [&](EventIndex item) {
    return task_[item].valid() && end(item) <= end(call) + kDeviceClockSlack && start(item) < resumed;
  };
  for (const EventIndex item : work) {
    if (awaited(item)) latest = std::max(latest, end(item));
  }
  if (latest == INT64_MIN) return;
  usual = std::min(usual, trace_.events.duration[call]);
  const bool waited = latest > start(call) + usual;
  const int64_t lag = waited && !options_.usual_lags
                          ? resumed - latest
                          : std::min(resumed - latest, usual + out_.builder.gap(waiting).value);
  for (const EventIndex item : work) {
    if (awaited(item)) depend(next, task_[item], Anchor::end, std::min(lag, resumed - end(item)));
  }
  if (waited) out_.shorten(waiting, Nanoseconds(usual));
}

// What comes behind a call on its thread.
TaskId RankDependencies::next_on_thread(EventIndex call) const {
  const std::vector<TaskId>& thread = threads_[trace_.events.lane[call]];
  const auto next = std::upper_bound(thread.begin(), thread.end(), task_[call]);
  return task_[call].valid() && next != thread.end() ? *next : TaskId();
}

// Main thread and another one take turns: the autograd engine runs the backward pass on a thread of its own while the
// main thread waits. A turn of the other thread is what it does without anything beginning on the main thread. It begins
// when the main thread has got to where it was then; the main thread goes on when the turn has ended, unless it was
// busy with something of its own.
void RankDependencies::hand_over(LaneIndex main, LaneIndex other) {
  const std::vector<TaskId>& mains = threads_[main];
  const std::vector<TaskId>& others = threads_[other];
  size_t at = 0;  // the main task that began last
  for (size_t i = 0; i < others.size();) {
    const int64_t from = out_.start[others[i].value];
    while (at + 1 < mains.size() && out_.start[mains[at + 1].value] <= from) ++at;
    const bool main_goes_on = at + 1 < mains.size();
    const int64_t resumed = main_goes_on ? out_.start[mains[at + 1].value] : INT64_MAX;
    size_t last = i;
    while (last + 1 < others.size() && out_.start[others[last + 1].value] < resumed) ++last;
    const TaskId before = mains[at];
    const int64_t began = out_.start[before.value];
    if (began <= from) {
      depend(others[i], before, Anchor::start, from - began);
      if (i > 0) out_.builder.set_gap(others[i - 1], Nanoseconds(0));
      ++counts_.hand_overs;
    } else if (i == 0) {
      depend(others[i], out_.beginning, Anchor::start, from);
    }
    const int64_t until = out_.end(others[last]);
    const int64_t own = main_goes_on ? std::max<int64_t>(0, from - out_.end(before)) + resumed - until : INT64_MAX;
    const bool main_waited =
        main_goes_on && until <= resumed && (until - from >= own || (own <= kHandOverSlack && until - from >= kTurn));
    const int64_t busy = std::min(out_.builder.duration(before).value, from - began);
    const bool as_measured = out_.builder.duration(before).value == out_.end(before) - began;
    if (main_waited && began <= from && as_measured) {
      out_.shorten(before, Nanoseconds(busy));
      out_.builder.set_gap(before, Nanoseconds(from - began - busy));
      depend(mains[at + 1], others[last], Anchor::end, resumed - until);
    }
    i = last + 1;
  }
}

void RankDependencies::hand_over_all() {
  if (iterations_.lane == kNoIndex) return;
  for (LaneIndex lane = 0; lane < threads_.size(); ++lane) {
    if (lane != iterations_.lane && !threads_[lane].empty()) hand_over(iterations_.lane, lane);
  }
}

}  // namespace forerun
