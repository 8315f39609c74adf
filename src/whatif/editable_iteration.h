// EditableIteration: a traced iteration that optimizations change one after the other, and how long it takes.
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
#include "timeline/graph_edit.h"
#include "timeline/model_tasks.h"
#include "whatif/op_timer.h"
#include "whatif/traced_model.h"

namespace forerun::whatif {

// A profiled iteration is slower on the host than an unprofiled one: 1.35 times at the median of the host-bound runs of
// data/h200, from 1.16 to 1.63.
constexpr double kProfilerSlowdown = 1.35;
constexpr double kProfilerSlowdownLow = 1.16, kProfilerSlowdownHigh = 1.63;

class EditableIteration {
 public:
  // `trace` must outlive the iteration. `timer` may be null: optimizations that need a cost model then fail.
  static Result<EditableIteration> of(const Trace& trace, const OpTimer* timer);

  // The predicted iteration of a model that was not traced. The model's modules are by name.
  static Result<EditableIteration> of_model(TracedModel model, const OpTimer* timer);

  [[nodiscard]] const TaskGraph& graph() const { return graph_; }
  [[nodiscard]] const Trace& trace() const { return *trace_; }  // without events where there is only a model
  [[nodiscard]] bool is_traced() const { return untraced_ == nullptr; }
  [[nodiscard]] const OpTimer* timer() const { return timer_; }
  void use_timer(OpTimer timer);                                         // of another device from now on
  [[nodiscard]] double host_slowdown() const { return host_slowdown_; }  // of the trace against an unprofiled run
  // By how much longer a model's kernels take beside other GPUs that train (cost/analytic/full_machine.h); 1 of a trace.
  [[nodiscard]] double full_machine_slowdown() const { return full_machine_slowdown_; }

  // The innermost op that a task of the device was launched by, with shapes; nothing where the trace does not tell.
  [[nodiscard]] std::optional<TracedOp> op_of(TaskId task) const;
  [[nodiscard]] uint64_t op_key(TaskId task) const;  // equal for calls of one op with the same arguments

  // The forward pass rebuilt from the trace, so that the iteration can be derived again; null where the trace does not
  // allow it, and no_model() says why.
  [[nodiscard]] const TracedModel* model() const { return model_.get(); }
  [[nodiscard]] const std::optional<Error>& no_model() const { return no_model_; }
  [[nodiscard]] uint32_t call_of(TaskId task) const;  // of the forward pass that the task stems from; kNoLink: none
  // Where there is only a model: its gradients by the ops that tasks name as their events.
  [[nodiscard]] const std::vector<OpGradient>& model_gradients() const { return model_gradients_; }

  // How the run is set up as optimized so far.
  TrainingSetup setup;
  double batch_factor = 1;
  Variant variant;  // the same for single ops: precision and layout
  std::vector<std::string> assumptions;
  void assume(std::string text);
  // What of an iteration holds back the one behind it, where the trace holds one alone.
  std::vector<CarriedDependency> carried;

  // Takes over what an edit made.
  Status commit(const GraphEdit& edit);

  // Whether nothing was changed but how the run is set up, so that it can be derived anew as a whole.
  [[nodiscard]] bool only_setup_changed() const { return only_setup_changed_; }
  // Where there is only a model: its iteration in another setup, with the batch times a factor and on the timer's device, in place of
  // the one so far.
  Status derive_again(const TrainingSetup& to, double factor, const OpTimer& timer);
  Status derive_again(const TrainingSetup& to) { return derive_again(to, batch_factor, *timer_); }

  // Host tasks and gaps divided by the profiler's slowdown, but for data loading and runs of calls within one op; the
  // first op, which pays for the start of recording, as long as its like.
  Status remove_profiler(double slowdown = kProfilerSlowdown);
  void set_host_unprofiled() { host_slowdown_ = 1; }  // where it was taken out otherwise

  // The first op that launches something pays for the start of recording: as long as its like.
  void shorten_first_op(GraphEdit& edit) const;

  [[nodiscard]] Result<Nanoseconds> iteration_time() const;
  [[nodiscard]] Nanoseconds device_busy() const;  // of an iteration: sum of durations
  [[nodiscard]] size_t iterations() const;        // in the trace
  // Of an iteration: what its kernels take together where they overlap as they did in the trace (device_share.h).
  [[nodiscard]] Nanoseconds device_occupied() const;
  [[nodiscard]] Nanoseconds host_busy() const;  // of an iteration, all threads together: issuing, not waiting

 private:
  [[nodiscard]] Result<Nanoseconds> simulated_time() const;
  [[nodiscard]] Result<Nanoseconds> steady_state() const;
  [[nodiscard]] Nanoseconds between_completions(const Simulation& simulation) const;
  [[nodiscard]] std::vector<TaskId> tail() const;

  const Trace* trace_ = nullptr;
  std::shared_ptr<const Trace> untraced_;  // what trace_ points to where there is none
  const OpTimer* timer_ = nullptr;
  std::shared_ptr<const OpTimer> own_timer_;  // what timer_ points to where it was replaced
  std::shared_ptr<const TracedModel> model_;
  std::optional<Error> no_model_;
  std::vector<EventIndex> innermost_;  // by event: links.op
  std::vector<float> share_;           // by event: device_shares
  std::vector<TracedOp> model_ops_;    // by event, where there is no trace
  std::vector<OpGradient> model_gradients_;
  TaskGraph graph_;
  RankSteps steps_;
  TaskId beginning_;
  double host_slowdown_ = kProfilerSlowdown;
  double full_machine_slowdown_ = 1;
  bool only_setup_changed_ = true;
};

}  // namespace forerun::whatif
