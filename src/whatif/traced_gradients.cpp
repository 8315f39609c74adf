#include "whatif/traced_gradients.h"

#include <algorithm>
#include <unordered_map>

#include "graph/dtype.h"

namespace forerun::whatif {
namespace {

constexpr const char* kGradientNode = "torch::autograd::AccumulateGrad";

// Work of the GPU by when it was launched.
struct LaunchedWork {
  int64_t launched = 0;
  LaneIndex thread = kNoIndex;
  TaskId task;
  auto operator<=>(const LaunchedWork& other) const { return launched <=> other.launched; }
};

std::vector<LaunchedWork> launched_work(const EditableIteration& edited, const TraceLinks& links) {
  const TaskGraph& graph = edited.graph();
  std::vector<LaunchedWork> list;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    if (!on_gpu(graph.kind(task)) || graph.kind(task) == TaskKind::communication) continue;
    const uint32_t event = graph.event(task);
    const EventIndex launch = event == kNoLink ? kNoIndex : links.launch[event];
    if (launch == kNoIndex) continue;
    list.push_back({edited.trace().events.start[launch], edited.trace().events.lane[launch], task});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const LaunchedWork& a, const LaunchedWork& b) { return a.launched < b.launched; });
  return list;
}

Bytes bytes_of(const Trace& trace, EventIndex node) {
  const std::optional<TracedOp> op = traced_op(trace, node);
  if (!op || op->inputs.empty()) return {};
  const std::optional<DType> dtype = dtype_traced(op->inputs[0].type);
  return Bytes(op->elements(0) * (dtype ? size_of(*dtype) : 4));
}

class GradientFinder {
 public:
  explicit GradientFinder(const EditableIteration& edited)
      : edited_(edited), trace_(edited.trace()), links_(link_events(trace_)), work_(launched_work(edited, links_)) {
    find_threads();
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (trace_.events.kind[i] != EventKind::op || trace_.events.sequence[i] < 0) continue;
      // Ops that make no autograd node carry the number of the next one: the last of them made it.
      if (!is_backward(i)) forward_[trace_.events.sequence[i]] = i;
    }
    for (const LaunchedWork& work : work_) marked_ = marked_ || edited.graph().phase(work.task) == StepPhase::update;
  }

  std::vector<BackwardPass> find() {
    std::unordered_map<LaneIndex, int64_t> sequence;  // of the autograd node that a thread ran last
    const TraceEvents& events = trace_.events;
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (events.kind[i] != EventKind::op) continue;
      if (events.sequence[i] >= 0 && is_backward(i)) sequence[events.lane[i]] = events.sequence[i];
      if (trace_.name(i) != kGradientNode) continue;
      pass_work(events.end(i));
      if (complete_) passes_.emplace_back();
      if (again_) passes_.back().gradients.clear();  // a micro-batch before this one: added to, not yet exchanged
      complete_ = again_ = over_ = false;
      TaskGradient gradient{before(events.end(i), events.lane[i]), used_by(sequence, events.lane[i]),
                            bytes_of(trace_, i)};
      if (gradient.ready.valid()) passes_.back().gradients.push_back(gradient);
    }
    pass_work(INT64_MAX);
    std::erase_if(passes_, [](const BackwardPass& pass) { return pass.gradients.empty(); });
    return std::move(passes_);
  }

 private:
  // Autograd has threads of its own unless everything runs on one.
  void find_threads() {
    autograd_.assign(trace_.lanes.size(), false);
    std::vector<bool> with_ops(trace_.lanes.size(), false);
    for (EventIndex i = 0; i < trace_.size(); ++i) {
      if (trace_.events.kind[i] != EventKind::op) continue;
      with_ops[trace_.events.lane[i]] = true;
      if (trace_.name(i) == kGradientNode) autograd_[trace_.events.lane[i]] = true;
    }
    if (with_ops == autograd_) autograd_.assign(autograd_.size(), false);
  }
  [[nodiscard]] bool is_backward(EventIndex op) const {
    return trace_.events.forward_thread[op] > 0 || autograd_[trace_.events.lane[op]];
  }

  // Work launched until then: that of an update ends a pass, that of another forward pass begins a micro-batch.
  void pass_work(int64_t until) {
    for (; next_ < work_.size() && work_[next_].launched <= until; ++next_) {
      if (passes_.empty()) continue;
      const TaskId task = work_[next_].task;
      const bool backward = autograd_[work_[next_].thread];
      const StepPhase phase = backward ? StepPhase::backward : edited_.graph().phase(task);
      // Gradients may be set to zero within the next forward pass: that is no part of the update.
      over_ = over_ || (complete_ && phase == StepPhase::forward);
      if ((phase == StepPhase::update && !over_) || (!marked_ && !complete_ && phase != StepPhase::backward)) {
        passes_.back().updates.push_back(task);
        complete_ = true;
      }
      again_ = again_ || (!complete_ && phase == StepPhase::forward);
    }
  }

  // What the thread launched last up to then, or else anything.
  [[nodiscard]] TaskId before(int64_t time, LaneIndex thread) const {
    auto at = std::upper_bound(work_.begin(), work_.end(), LaunchedWork{time});
    if (at == work_.begin()) return {};
    const TaskId any = (at - 1)->task;
    for (; at != work_.begin(); --at) {
      if ((at - 1)->thread == thread) return (at - 1)->task;
    }
    return any;
  }

  [[nodiscard]] TaskId used_by(const std::unordered_map<LaneIndex, int64_t>& sequence, LaneIndex thread) const {
    const auto node = sequence.find(thread);
    if (node == sequence.end()) return {};
    const auto op = forward_.find(node->second);
    if (op == forward_.end()) return {};
    const auto at = std::lower_bound(work_.begin(), work_.end(), LaunchedWork{trace_.events.start[op->second]});
    return at == work_.end() ? TaskId() : at->task;
  }

  const EditableIteration& edited_;
  const Trace& trace_;
  TraceLinks links_;
  std::vector<LaunchedWork> work_;
  std::unordered_map<int64_t, EventIndex> forward_;  // by sequence number
  std::vector<bool> autograd_;                       // threads, by lane of the trace
  bool marked_ = false;                              // the trace says what the update is
  std::vector<BackwardPass> passes_;
  size_t next_ = 0;       // of work_
  bool complete_ = true;  // the update of the last pass has begun
  bool over_ = false;     // the update of the last pass has ended
  bool again_ = false;    // a forward pass without an update before it
};

// A model's iteration: tasks name the ops they stand for.
std::vector<BackwardPass> predicted_gradients(const EditableIteration& edited) {
  const TaskGraph& graph = edited.graph();
  BackwardPass pass;
  std::vector<TaskId> work;
  for (const TaskId task : select(graph, is_on_gpu())) {
    if (graph.lane_of(task).kind == LaneKind::network_link) continue;
    if (graph.phase(task) == StepPhase::update) pass.updates.push_back(task);
    if (graph.event(task) != kNoLink) work.push_back(task);
  }
  std::stable_sort(work.begin(), work.end(), [&](TaskId a, TaskId b) { return graph.event(a) < graph.event(b); });
  const auto from = [&](size_t op) {
    return std::partition_point(work.begin(), work.end(), [&](TaskId task) { return graph.event(task) < op; });
  };
  for (const OpGradient& gradient : edited.model_gradients()) {
    const auto used = from(gradient.used), behind = from(gradient.last + 1);
    if (behind == work.begin()) continue;
    pass.gradients.push_back({*(behind - 1), used == work.end() ? TaskId() : *used, gradient.bytes});
  }
  if (pass.gradients.empty()) return {};
  return {std::move(pass)};
}

}  // namespace

Result<std::vector<BackwardPass>> traced_gradients(const EditableIteration& edited, Bytes all_bytes) {
  std::vector<BackwardPass> passes = edited.is_traced() ? GradientFinder(edited).find() : predicted_gradients(edited);
  if (passes.empty()) {
    return Error{"no gradients in the trace: it has no torch::autograd::AccumulateGrad with work of the GPU before it",
                 edited.trace().file, "profile a whole training step, forward, backward and update"};
  }
  bool shapes = true;
  for (const BackwardPass& pass : passes) {
    for (const TaskGradient& gradient : pass.gradients) shapes = shapes && gradient.bytes.value > 0;
  }
  if (!shapes && all_bytes.value == 0) {
    return Error{"the trace does not say how large gradients are", edited.trace().file,
                 "profile with record_shapes=True, or say how many megabytes there are: gradients_mb=100"};
  }
  if (all_bytes.value == 0) return passes;
  for (BackwardPass& pass : passes) {
    int64_t known = 0;
    for (const TaskGradient& gradient : pass.gradients) known += gradient.bytes.value;
    const auto count = static_cast<int64_t>(pass.gradients.size());
    for (TaskGradient& gradient : pass.gradients) {
      const double share = shapes ? static_cast<double>(gradient.bytes.value) / static_cast<double>(known)
                                  : 1.0 / static_cast<double>(count);
      gradient.bytes = Bytes(static_cast<int64_t>(static_cast<double>(all_bytes.value) * share));
    }
  }
  return passes;
}

}  // namespace forerun::whatif
