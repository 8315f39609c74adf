// RankDependencies: the part of dependency_graph() that works on one rank. Used by dependency_*.cpp only.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "timeline/dependency_graph.h"
#include "timeline/layers.h"

namespace forerun {

constexpr int64_t kDeviceClockSlack = 5'000;  // nanoseconds by which clocks of host and device may differ

// Kernels of collectives, in order of start.
std::vector<EventIndex> communications_of(const Trace& trace);

// What the ranks build together.
struct GraphAssembly {
  TaskGraphBuilder builder;
  std::shared_ptr<StringTable> names;
  std::vector<int64_t> start;  // measured, by task, from the origin
  TaskId beginning;            // a mark at zero that the first tasks hang on

  TaskId add(const Task& task, int64_t from);
  // Measured, from the origin.
  [[nodiscard]] int64_t end(TaskId id) const;
  // Gives a task another duration than the measured one.
  void shorten(TaskId id, Nanoseconds duration);

 private:
  std::unordered_map<uint32_t, int64_t> measured_ends_;  // of the tasks that were given another duration
};

class RankDependencies {
 public:
  // Times count from `origin`. `rendezvous`: collectives get a task of their arrival, so that ranks can meet.
  RankDependencies(const Trace& trace, int32_t rank, int64_t origin, bool rendezvous, const DependencyOptions& options,
                   GraphAssembly& assembly);

  void build();

  [[nodiscard]] const DependencyCounts& counts() const { return counts_; }
  [[nodiscard]] const RankSteps& steps() const { return steps_; }
  [[nodiscard]] const std::vector<EventIndex>& communications() const { return communications_; }
  [[nodiscard]] TaskId arrival(EventIndex communication) const { return entry(communication); }
  [[nodiscard]] TaskId task(EventIndex event) const { return task_[event]; }
  [[nodiscard]] int64_t start(EventIndex i) const { return trace_.events.start[i] - origin_; }
  [[nodiscard]] int64_t end(EventIndex i) const { return start(i) + trace_.events.duration[i]; }

 private:
  // What a CUDA or HIP call may wait for, by its name.
  enum class CallKind : uint8_t { other, device_sync, stream_sync, event_sync, wait_event, record, copy, memory };
  struct Stream {
    LaneIndex lane = kNoIndex;
    std::vector<EventIndex> work;   // in order of start
    std::vector<int64_t> launched;  // when each was launched; ascending
    // By stream: the end of what this stream is known to have waited for. Few streams wait for one another.
    std::unordered_map<size_t, int64_t> waited;
  };
  struct CrossWait {
    EventIndex after, before;  // device work of two streams
    auto operator<=>(const CrossWait&) const = default;
  };

  // dependency_host.cpp: tasks of all events; waits of the host; threads.
  void name_calls();
  void add_lanes();
  void add_tasks();
  Task task_of(EventIndex i, TaskKind kind);
  NameId name(NameId of_trace);
  void add_host(LaneIndex lane, const Task& task, int64_t from, int64_t to);
  void add_device(EventIndex i);
  void add_mark(int64_t at, const char* text);
  void close_lanes();
  void hold_host(EventIndex call, const std::vector<EventIndex>& work, int64_t usual);
  void hand_over(LaneIndex main, LaneIndex other);
  void hand_over_all();

  // dependency_device.cpp: streams.
  void collect_streams();
  void measure_usual();
  void measure_usual_crossing();
  void link_device();
  void place(EventIndex work, EventIndex before, EventIndex latest, std::vector<EventIndex>& others);
  // A distance as it goes into the graph: where it decided its own, or with usual_lags the usual one; else at most that.
  [[nodiscard]] int64_t distance(int64_t own, int64_t usual, bool decided) const;
  [[nodiscard]] EventIndex coincident(EventIndex work) const;
  void queue_waits();

  // dependency_sync.cpp: which work a sync waits for.
  void find_stream_waits();
  void told_stream_wait(EventIndex row);
  void infer_stream_wait(EventIndex call, EventIndex launch);
  void host_syncs();
  [[nodiscard]] std::vector<EventIndex> told_work(EventIndex row, EventIndex call) const;
  [[nodiscard]] std::vector<EventIndex> all_streams_before(int64_t at) const;
  [[nodiscard]] EventIndex ended_during(EventIndex call) const;
  [[nodiscard]] EventIndex last_launched(const Stream& stream, int64_t at) const;
  [[nodiscard]] size_t stream_of(EventIndex work) const { return stream_of_lane_[trace_.events.lane[work]]; }
  [[nodiscard]] const Stream* stream_numbered(int64_t device, int64_t number) const;

  [[nodiscard]] int64_t launch_time(EventIndex work) const {
    return links_.launch[work] == kNoIndex ? start(work) : start(links_.launch[work]);
  }
  // Where device work is held back: a collective that ranks meet for by its arrival.
  [[nodiscard]] TaskId entry(EventIndex work) const {
    const auto arrives = arrivals_.find(work);
    return arrives == arrivals_.end() ? task_[work] : arrives->second;
  }
  [[nodiscard]] TaskId next_on_thread(EventIndex call) const;
  void depend(TaskId after, TaskId before, Anchor anchor, int64_t lag) {
    out_.builder.depend(after, {before, anchor, Nanoseconds(lag)});
  }

  const Trace& trace_;
  const int32_t rank_;
  const int64_t origin_;
  const bool rendezvous_;
  const DependencyOptions options_;
  GraphAssembly& out_;

  TraceLinks links_;
  Iterations iterations_;
  EventLayers layers_;
  std::vector<bool> running_;
  std::vector<NameId> name_map_;     // of the trace -> of the graph
  std::vector<CallKind> call_kind_;  // by name of the trace
  std::vector<bool> communicates_;   // by event

  struct OpenTask {
    TaskId task;
    int64_t start = 0, end = 0;
  };
  std::vector<LaneId> lane_;                         // by lane of the trace
  std::vector<OpenTask> open_;                       // by lane of the trace: the last task of a host thread
  std::vector<std::vector<TaskId>> threads_;         // by lane of the trace: tasks of host threads, ascending
  std::vector<TaskId> task_;                         // by event
  std::unordered_map<EventIndex, TaskId> arrivals_;  // of collectives that ranks meet for
  std::vector<EventIndex> communications_;
  std::vector<Stream> streams_;
  std::vector<size_t> stream_of_lane_;
  std::unordered_map<int64_t, EventIndex> records_;  // by correlation: calls that record an event
  std::vector<CrossWait> cross_;
  int64_t usual_lag_ = 5000, usual_gap_ = 1000, usual_call_ = 5000;
  int64_t usual_crossing_ = 1000;  // from the end of work to the start of what waited for it on another stream

  DependencyCounts counts_;
  RankSteps steps_;
};

}  // namespace forerun
