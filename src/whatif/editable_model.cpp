// EditableIteration::of_model: a predicted iteration as tasks, so that optimizations apply to a model that has never run.
//
// timeline/model_tasks.h makes the tasks: one host thread issues the ops of the derived iteration in program order, one
// stream runs their kernels (an op's kernels are one task).
#include <map>

#include "cost/analytic/full_machine.h"
#include "timeline/model_tasks.h"
#include "whatif/editable_iteration.h"
#include "whatif/iteration_cost.h"

namespace forerun::whatif {
namespace {

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
  EditableIteration edited;
  auto none = std::make_shared<Trace>();
  none->file = model.name;
  edited.untraced_ = std::move(none);
  edited.trace_ = edited.untraced_.get();
  edited.timer_ = timer;
  edited.host_slowdown_ = 1;
  const TrainingSetup setup = model.setup;
  for (uint32_t call = 0; call < model.calls; ++call) model.call_of[call] = call;
  edited.model_ = std::make_shared<const TracedModel>(std::move(model));
  if (Status status = edited.derive_again(setup); !status.ok()) return status.error();
  return edited;
}

Status EditableIteration::derive_again(const TrainingSetup& to, double factor, const OpTimer& timer) {
  CHECK(!is_traced() && only_setup_changed_, "what was edited is not derived again");
  const auto derived = derived_iteration(*model_, factor, to, timer);
  if (!derived) return derived.error();
  auto made = model_tasks(derived->graph, derived->costs,
                          {.gap = timer.device().launch_gap,
                           .host = &derived->host,
                           .rules = rules_of(to.loop),
                           .compiled = derived->compiled.get(),
                           .calls = derived->calls});
  if (!made) return made.error();
  setup = to;
  batch_factor = factor;
  variant = {to.precision, to.channels_last};
  graph_ = std::move(made->tasks);
  beginning_ = made->beginning;
  steps_ = {};
  steps_.marks = {beginning_};
  steps_.to_the_end = true;
  model_ops_.clear();
  for (const Op& op : derived->graph.ops()) model_ops_.push_back(recorded(derived->graph, op));
  model_gradients_ = op_gradients(derived->graph, derived->compiled.get());
  full_machine_slowdown_ = forerun::full_machine_slowdown(derived->graph, derived->costs, timer.device(), to.precision);
  return {};
}

}  // namespace forerun::whatif
