// EditableIteration::of_model: a predicted iteration as tasks, so that optimizations apply to a model that has never run.
//
// One host thread issues the ops of the derived iteration in program order, one stream runs their kernels (an op's kernels
// are one task), as timeline/host_gpu_timeline.h has it.
#include <map>

#include "timeline/host_gpu_timeline.h"
#include "whatif/editable_iteration.h"
#include "whatif/iteration_cost.h"

namespace forerun::whatif {
namespace {

StepPhase step_phase(Phase phase) {
  if (phase == Phase::forward) return StepPhase::forward;
  return phase == Phase::backward ? StepPhase::backward : StepPhase::update;
}

// "aten.addmm.default" -> "aten::addmm", with the shapes that a profiler would record.
TracedOp recorded(const Graph& graph, const Op& op) {
  TracedOp made;
  const std::string& name = graph.name(op);
  const size_t dot = name.find('.'), overload = name.find('.', dot + 1);
  made.name = dot == std::string::npos ? name : name.substr(0, dot) + "::" + name.substr(dot + 1, overload - dot - 1);
  for (const TensorId id : graph.inputs(op)) {
    const auto shape = graph.shape(id);
    const bool half = graph.tensor(id).dtype == DType::bfloat16;
    made.inputs.push_back({{shape.begin(), shape.end()},
                           is_floating(graph.tensor(id).dtype) ? (half ? "c10::BFloat16" : "float") : "long int",
                           {}});
  }
  return made;
}

}  // namespace

Result<EditableIteration> EditableIteration::of_model(TracedModel model, const OpTimer* timer) {
  CHECK(timer != nullptr, "a model's iteration is timed by a cost model");
  const auto derived = derived_iteration(model, 1, model.setup, *timer);
  if (!derived) return derived.error();
  EditableIteration edited;
  auto none = std::make_shared<Trace>();
  none->file = model.name;
  edited.untraced_ = std::move(none);
  edited.trace_ = edited.untraced_.get();
  edited.timer_ = timer;
  edited.setup = model.setup;
  edited.variant = {model.setup.precision, model.setup.channels_last};
  edited.host_slowdown_ = 1;
  auto names = std::make_shared<StringTable>();
  TaskGraphBuilder builder(names);
  const LaneId thread = builder.add_lane({LaneKind::host_thread, 0, 0, true, "host"});
  const LaneId stream = builder.add_lane({LaneKind::gpu_stream, 0, 0, true, "stream 0"});
  Task task;
  task.lane = thread;
  task.kind = TaskKind::mark;
  task.name = names->intern("step");
  task.op_instance = task.event = kNoLink;
  edited.beginning_ = builder.add(task);
  edited.steps_.marks = {edited.beginning_};
  edited.steps_.to_the_end = true;
  task.kind = TaskKind::host_op;
  task.phase = StepPhase::update;  // zero_grad and what parameters cost
  task.name = names->intern("Optimizer.zero_grad");
  task.duration = derived->host.per_iteration;
  builder.add(task);
  const std::vector<LaneOp> ops = lane_ops(derived->graph, derived->costs, derived->host);
  TaskId last;
  for (size_t i = 0; i < ops.size(); ++i) {
    const Op& op = derived->graph.ops()[i];
    Task issue;
    issue.lane = thread;
    issue.duration = ops[i].host;
    issue.phase = step_phase(op.phase);
    issue.name = issue.op = names->intern(derived->graph.name(op));
    issue.module = names->intern(derived->graph.module(op));
    issue.op_instance = op.phase == Phase::update ? kNoLink : derived->calls[i];
    issue.event = static_cast<uint32_t>(i);
    issue.kind = ops[i].waits ? TaskKind::sync : ops[i].kernels > 0 ? TaskKind::launch : TaskKind::host_op;
    const TaskId issued = builder.add(issue);
    if (ops[i].waits && last.valid()) builder.depend(issued, {last, Anchor::end, Nanoseconds(0)});
    if (ops[i].kernels == 0) continue;
    Task kernel = issue;
    kernel.lane = stream;
    kernel.kind = TaskKind::kernel;
    kernel.duration = ops[i].gpu - ops[i].overlapped;
    kernel.gap = timer->device().launch_gap * ops[i].kernels;
    last = builder.add(kernel);
    builder.depend(last, {issued, Anchor::end, Nanoseconds(0)});
  }
  auto graph = std::move(builder).build();
  if (!graph) return graph.error();
  edited.graph_ = std::move(*graph);
  for (const Op& op : derived->graph.ops()) edited.model_ops_.push_back(recorded(derived->graph, op));
  edited.model_gradients_ = op_gradients(derived->graph);
  for (uint32_t call = 0; call < model.calls; ++call) model.call_of[call] = call;
  edited.model_ = std::make_shared<const TracedModel>(std::move(model));
  return edited;
}

}  // namespace forerun::whatif
