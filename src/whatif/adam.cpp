// Adam's update by one fused kernel, or by multi-tensor (foreach) kernels, in place of a loop over parameters.
//
// Source: Daydream's FusedAdam (the update's kernels removed, one inserted). Where the forward pass could be rebuilt both
// updates are derived and timed by the cost and host models (setup_change.h). Otherwise bytes by what the kernels read and
// write: fused 7 passes over the parameters (4 read, 3 written), foreach about 19; host: an op and what each tensor of its lists
// adds (31 us + 1.2 us a tensor, from the host-bound runs of data/h200), one op fused with its step counters, 13 foreach.
// Assumed: the update of the trace is Adam's, in float32, everything on one device.
#include "whatif/optimizations.h"
#include "whatif/setup_change.h"

#include <algorithm>

namespace forerun::whatif {
namespace {

struct UpdateShape {
  int64_t tensors = 0;
  double elements = 0;
};

// Parameters are counted by the one op of Adam that every implementation without fusion calls once for each.
UpdateShape parameters_of(const EditableIteration& edited) {
  UpdateShape found;
  const TaskGraph& graph = edited.graph();
  for (const TaskId task : select(graph, both(in_phase(StepPhase::update), is_kind(TaskKind::kernel)))) {
    const std::optional<TracedOp> op = edited.op_of(task);
    if (!op || op->name != "aten::addcdiv_") continue;
    ++found.tensors;
    found.elements += static_cast<double>(op->elements(0));
  }
  const auto iterations = static_cast<int64_t>(std::max<size_t>(edited.iterations(), 1));
  found.tensors /= iterations;
  found.elements /= static_cast<double>(iterations);
  return found;
}

struct UpdateForm {
  const char* name;
  double bytes_per_element;
  int ops;
  Nanoseconds fixed_host;
};

Status replace_update(EditableIteration& edited, const UpdateForm& form) {
  if (edited.timer() == nullptr)
    return Error{"the cost model is not there", "data folder", "train it: forerun train hybrid"};
  const UpdateShape shape = parameters_of(edited);
  if (shape.tensors == 0) {
    return Error{"no for-loop Adam with recorded shapes in the trace", edited.trace().file,
                 "profile with record_shapes=True and foreach=False"};
  }
  const TaskGraph& graph = edited.graph();
  GraphEdit edit(graph);
  const Predicate update = both(in_phase(StepPhase::update), negated(is_kind(TaskKind::mark)));
  std::vector<TaskId> gone, kept_launch,
      kept_kernel;  // the first launch and kernel of each update become the new one's
  bool have_launch = false, have_kernel = false;
  const auto host_us = static_cast<double>(form.ops) * (31 + 1.2 * static_cast<double>(shape.tensors));
  const Nanoseconds host = form.fixed_host + nanoseconds_from_us(host_us * edited.host_slowdown());
  const Nanoseconds device = edited.timer()->memory_time(form.bytes_per_element * shape.elements);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const TaskId task(i);
    // A new update begins when something else was launched in between.
    if (graph.kind(task) == TaskKind::launch && graph.phase(task) != StepPhase::update)
      have_launch = have_kernel = false;
    if (!update(graph, task)) continue;
    if (graph.kind(task) == TaskKind::launch && !have_launch) {
      have_launch = true;
      kept_launch.push_back(task);
    } else if (graph.kind(task) == TaskKind::kernel && !have_kernel) {
      have_kernel = true;
      kept_kernel.push_back(task);
    } else {
      gone.push_back(task);
    }
  }
  edit.remove(gone);
  for (const TaskId task : kept_launch) edit.set_duration(task, host);
  edit.scale_gaps(kept_launch, 0);
  for (const TaskId task : kept_kernel) edit.set_duration(task, device);
  edited.assume(std::string(form.name) + ": " + std::to_string(shape.tensors) + " parameter tensors, " +
                std::to_string(static_cast<int64_t>(form.bytes_per_element)) + " bytes moved an element");
  return edited.commit(edit);
}

// With the forward pass at hand the iteration is derived anew.
Status derived_update(EditableIteration& edited, OptimizerImpl impl) {
  if (edited.setup.optimizer.kind != OptimizerKind::adam && edited.setup.optimizer.kind != OptimizerKind::adamw) {
    return Error{"the update is not Adam's", edited.trace().file,
                 "a trace says Optimizer.step#Adam.step where it is; a model takes --optimizer adam"};
  }
  TrainingSetup to = edited.setup;
  to.optimizer.impl = impl;
  Status status = change_setup(edited, to, edited.batch_factor);
  if (!status.ok()) return status;
  edited.assume("Adam's update " + std::string(impl == OptimizerImpl::fused ? "fused" : "by foreach kernels") +
                (edited.is_traced() || !edited.only_setup_changed()
                     ? ": its kernels and host time by the ratio of both in the cost and host models"
                     : ", the iteration derived again"));
  return {};
}

}  // namespace

Status apply_fused_adam(EditableIteration& edited, const Parameters&) {
  const Status derived = derived_update(edited, OptimizerImpl::fused);
  if (derived.ok() || !edited.is_traced()) return derived;
  return replace_update(edited, {"fused Adam", 28, 2, Nanoseconds(300'000)});
}

Status apply_foreach_adam(EditableIteration& edited, const Parameters&) {
  const Status derived = derived_update(edited, OptimizerImpl::foreach);
  if (derived.ok() || !edited.is_traced()) return derived;
  return replace_update(edited, {"foreach Adam", 76, 13, Nanoseconds(300'000)});
}

}  // namespace forerun::whatif
