// Scene: a traced iteration that optimizations change one after the other, and how long it takes.
//
// The iteration time is what repeats: from the completion of one iteration to that of the next, on host and GPU alike,
// so that a host running ahead of the GPU does not pass for speed. A trace of one iteration is repeated back to back,
// without the wait for the GPU that the profiler's end made.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ingest/trace/trace_links.h"
#include "timeline/dependency_graph.h"
#include "whatif/graph_edit.h"
#include "whatif/op_timer.h"

namespace forerun::whatif {

// A profiled iteration is slower on the host than an unprofiled one: 1.35 times at the median of the host-bound runs of
// data/h200, from 1.16 to 1.63.
constexpr double kProfilerSlowdown = 1.35;
constexpr double kProfilerSlowdownLow = 1.16, kProfilerSlowdownHigh = 1.63;

class Scene {
 public:
  // `trace` must outlive the scene. `timer` may be null: optimizations that need a cost model then fail.
  static Result<Scene> of(const Trace& trace, const OpTimer* timer);

  [[nodiscard]] const TaskGraph& graph() const { return graph_; }
  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] const OpTimer* timer() const { return timer_; }
  [[nodiscard]] double host_slowdown() const { return host_slowdown_; }  // of the trace against an unprofiled run

  // The innermost op that a task of the device was launched by, with shapes; nothing where the trace does not tell.
  [[nodiscard]] std::optional<TracedOp> op_of(TaskId task) const;
  [[nodiscard]] uint64_t op_key(TaskId task) const;  // equal for calls of one op with the same arguments

  // Precision and layout of the run as optimized so far.
  Variant variant;
  std::vector<std::string> assumptions;
  void assume(std::string text);

  // Takes over what an edit made.
  Status commit(const GraphEdit& edit);

  // Host tasks and gaps divided by the profiler's slowdown, but for data loading and runs of calls within one op; the
  // first op, which pays for the start of recording, as long as its like.
  Status remove_profiler(double slowdown = kProfilerSlowdown);

  [[nodiscard]] Result<Nanoseconds> iteration_time() const;
  [[nodiscard]] Nanoseconds device_busy() const;  // of an iteration: sum of durations
  [[nodiscard]] size_t iterations() const;        // in the trace

 private:
  [[nodiscard]] Result<Nanoseconds> steady_state() const;
  [[nodiscard]] Nanoseconds between_completions(const Simulation& simulation) const;
  [[nodiscard]] std::vector<TaskId> tail() const;
  void shorten_first_op(GraphEdit& edit) const;

  const Trace* trace_ = nullptr;
  const OpTimer* timer_ = nullptr;
  std::vector<EventIndex> innermost_;  // by event: links.op
  TaskGraph graph_;
  RankSteps steps_;
  TaskId beginning_;
  double host_slowdown_ = kProfilerSlowdown;
};

}  // namespace forerun::whatif
