#include "whatif/setup_change.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "whatif/iteration_cost.h"

namespace forerun::whatif {
namespace {

constexpr size_t kForward = 0, kBackward = 1;

std::optional<size_t> pass_of(StepPhase phase) {
  if (phase == StepPhase::forward) return kForward;
  if (phase == StepPhase::backward) return kBackward;
  return std::nullopt;
}

bool host_work(const TaskGraph& graph, TaskId task) {
  return graph.lane_of(task).kind == LaneKind::host_thread && graph.kind(task) != TaskKind::data_loading &&
         graph.kind(task) != TaskKind::sync && graph.kind(task) != TaskKind::mark;
}

// Of one kind of lane and one pass: what was traced of each call, and what becomes of it. Kernels change in proportion: the
// ratio of a call holds whatever its measured time. The host's part changes by a difference: an op more costs what it costs,
// however long the call was before.
class PassScaler {
 public:
  explicit PassScaler(size_t calls) : traced_(calls), ratio_(calls, 1) {}

  void add(uint32_t call, double time) { traced_[call] += time; }

  void set(const std::vector<double>& before, const std::vector<double>& after, bool proportional) {
    const double modelled = std::accumulate(before.begin(), before.end(), 0.0);
    const double seen = std::accumulate(traced_.begin(), traced_.end(), 0.0);
    if (modelled <= 0 || seen <= 0) return;
    const double unit = seen / modelled;  // traced nanoseconds for one of the model's
    const double usual = std::accumulate(after.begin(), after.end(), 0.0) / modelled;
    double kept = 0, extra = 0;
    for (size_t i = 0; i < traced_.size(); ++i) {
      const double more = (after[i] - before[i]) * unit;
      if (proportional && traced_[i] > 0 && before[i] <= 0 && after[i] <= 0) {
        ratio_[i] = std::clamp(usual, 0.01, 100.0);  // the model misses it: as the rest of the pass
      } else if (traced_[i] <= 0 || before[i] <= 0) {
        extra += more;
      } else if (proportional) {
        ratio_[i] = std::clamp(after[i] / before[i], 0.01, 100.0);
      } else {
        ratio_[i] = std::max(0.05, 1 + more / traced_[i]);
      }
      kept += traced_[i] * ratio_[i];
    }
    if (kept <= 0) return;
    const double all = std::max(0.05, 1 + extra / kept);  // what has no traced call is spread over the pass
    for (double& ratio : ratio_) ratio *= all;
  }

  [[nodiscard]] double ratio(uint32_t call) const { return ratio_[call]; }

 private:
  std::vector<double> traced_, ratio_;
};

class SetupChange {
 public:
  SetupChange(const EditableIteration& edited, const IterationCost& before, const IterationCost& after)
      : edited_(edited), graph_(edited.graph()), before_(before), after_(after) {
    for (auto* scalers : {&gpu_, &host_}) scalers->assign(2, PassScaler(before.calls.size()));
  }

  void scale(GraphEdit& edit) {
    measure();
    for (const size_t pass : {kForward, kBackward}) {
      gpu_[pass].set(column(before_, pass, true), column(after_, pass, true), true);
      host_[pass].set(column(before_, pass, false), column(after_, pass, false), false);
    }
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const TaskId task(i);
      const auto pass = pass_of(graph_.phase(task));
      if (!pass) continue;
      const uint32_t call = call_of(task);
      if (computes(task)) {
        edit.scale(std::array{task}, gpu_[*pass].ratio(call));
      } else if (host_work(graph_, task)) {
        edit.scale(std::array{task}, host_[*pass].ratio(call));
        edit.scale_gaps(std::array{task}, host_[*pass].ratio(call));
      }
    }
  }

 private:
  [[nodiscard]] bool computes(TaskId task) const {
    return on_gpu(graph_.kind(task)) && graph_.kind(task) != TaskKind::communication;
  }
  [[nodiscard]] uint32_t call_of(TaskId task) const {
    return std::min(edited_.call_of(task), static_cast<uint32_t>(before_.calls.size() - 1));
  }

  void measure() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const TaskId task(i);
      const auto pass = pass_of(graph_.phase(task));
      if (!pass) continue;
      const auto own = static_cast<double>(graph_.duration(task).value);
      if (computes(task)) gpu_[*pass].add(call_of(task), own);
      if (host_work(graph_, task)) {
        host_[*pass].add(call_of(task), own + static_cast<double>(graph_.gap(task).value));
      }
    }
  }

  static std::vector<double> column(const IterationCost& cost, size_t pass, bool gpu) {
    std::vector<double> values;
    for (const auto& call : cost.calls) values.push_back(gpu ? call[pass].gpu : call[pass].host);
    return values;
  }

  const EditableIteration& edited_;
  const TaskGraph& graph_;
  const IterationCost& before_;
  const IterationCost& after_;
  std::vector<PassScaler> gpu_, host_;
};

// The update in one launch and one kernel of the new times. What is no op's stays: zero_grad, what a library's loop does.
void rewrite_update(const EditableIteration& edited, double gpu_ratio, double host_ratio, GraphEdit& edit) {
  const TaskGraph& graph = edited.graph();
  std::vector<TaskId> gone;
  double host = 0, gpu = 0;
  TaskId launch, kernel;
  const auto finish = [&] {  // of one update
    if (launch.valid()) {
      edit.set_duration(launch, Nanoseconds(std::llround(host * host_ratio)));
      edit.scale_gaps(std::array{launch}, 0);
    }
    if (kernel.valid()) edit.set_duration(kernel, Nanoseconds(std::llround(gpu * gpu_ratio)));
    launch = kernel = TaskId();
    host = gpu = 0;
  };
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    if (graph.kind(task) == TaskKind::launch && graph.phase(task) != StepPhase::update) finish();
    if (graph.phase(task) != StepPhase::update || graph.kind(task) == TaskKind::mark) continue;
    if (graph.event(task) == kNoLink) continue;
    const auto own = static_cast<double>(graph.duration(task).value);
    const bool on_device = on_gpu(graph.kind(task));
    if (on_device) gpu += own;
    if (host_work(graph, task)) host += own + static_cast<double>(graph.gap(task).value);
    if (graph.kind(task) == TaskKind::launch && !launch.valid()) {
      launch = task;
    } else if (graph.kind(task) == TaskKind::kernel && !kernel.valid()) {
      kernel = task;
    } else {
      gone.push_back(task);
    }
  }
  finish();
  edit.remove(gone);
}

}  // namespace

Status change_setup(EditableIteration& edited, const TrainingSetup& to, double batch_factor) {
  if (edited.timer() == nullptr) {
    return Error{"the cost model is not there", "data folder", "train it: forerun train hybrid"};
  }
  return change_setup(edited, to, batch_factor, *edited.timer());
}

Status change_setup(EditableIteration& edited, const TrainingSetup& to, double batch_factor, const OpTimer& device) {
  if (edited.model() == nullptr) return *edited.no_model();
  if (!edited.is_traced() && edited.only_setup_changed()) return edited.derive_again(to, batch_factor, device);
  const auto before = iteration_cost(*edited.model(), edited.batch_factor, edited.setup, *edited.timer());
  if (!before) return before.error();
  const auto after = iteration_cost(*edited.model(), batch_factor, to, device);
  if (!after) return after.error();
  GraphEdit edit(edited.graph());
  SetupChange(edited, *before, *after).scale(edit);
  const auto ratio = [](double now, double then) { return then > 0 ? now / then : 1.0; };
  if (to.optimizer.impl != edited.setup.optimizer.impl || to.optimizer.kind != edited.setup.optimizer.kind) {
    rewrite_update(edited, ratio(after->update.gpu, before->update.gpu), ratio(after->update.host, before->update.host),
                   edit);
  } else {
    const Predicate updates = both(in_phase(StepPhase::update), is_kind(TaskKind::kernel));
    edit.scale(select(edited.graph(), updates), ratio(after->update.gpu, before->update.gpu));
  }
  if (Status status = edited.commit(edit); !status.ok()) return status;
  edited.setup = to;
  edited.batch_factor = batch_factor;
  return {};
}

}  // namespace forerun::whatif
