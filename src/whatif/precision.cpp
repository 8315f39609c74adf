// Automatic mixed precision and TF32.
//
// Source: PyTorch's autocast rules; kernel-time ratios from the project's cost model for each op's shape (op_timer.h).
// Daydream's rule, on request: compute-bound kernels (matrix products, convolutions) take a third, others half.
// Assumed: products and convolutions run in bfloat16, layer norms, softmax and losses stay in float32, everything else
// between them moves half the bytes; each weight is cast once in the forward pass and its gradient once in the backward
// pass; the update stays as it is.
#include <algorithm>
#include <unordered_map>

#include "derive/op_class.h"
#include "derive/precision_support.h"
#include "whatif/kernel_insertion.h"
#include "whatif/optimizations.h"
#include "whatif/setup_change.h"

namespace forerun::whatif {
namespace {

// "aten::addmm" -> its class.
OpClass class_of(const TracedOp& op) {
  const std::string base = op.name.rfind("aten::", 0) == 0 ? op.name.substr(6) : op.name;
  if (base.find("efficient_attention") != std::string::npos || base.find("flash_attention") != std::string::npos) {
    return OpClass::attention;
  }
  if (base.find("conv_depthwise") != std::string::npos) return OpClass::convolution;
  return op_class("aten." + base + ".default");
}

bool is_product(OpClass cls) {
  return cls == OpClass::gemm || cls == OpClass::convolution || cls == OpClass::attention || cls == OpClass::rnn;
}

// Under autocast these run in float32 whatever they are given; pooling with indices takes as long in both types.
bool stays_float32(const TracedOp& op, OpClass cls) {
  return cls == OpClass::softmax || cls == OpClass::pooling || cls == OpClass::embedding || cls == OpClass::optimizer ||
         op.name.find("layer_norm") != std::string::npos || op.name.find("nll_loss") != std::string::npos ||
         op.name.find("cross_entropy") != std::string::npos;
}

Nanoseconds shrunk(Nanoseconds duration, Nanoseconds floor, double factor) {
  if (duration <= floor) return duration;
  const auto beyond = static_cast<double>((duration - floor).value);
  return floor + Nanoseconds(static_cast<int64_t>(beyond * factor));
}

// The duration of one kernel in `to`.
class Rescaler {
 public:
  Rescaler(const EditableIteration& edited, Variant to) : edited_(edited), to_(to) {}

  Nanoseconds operator()(TaskId task) {
    const Nanoseconds duration = edited_.graph().duration(task);
    const uint64_t key = edited_.op_key(task);
    auto known = rules_.find(key);
    if (key == UINT64_MAX || known == rules_.end()) known = rules_.insert_or_assign(key, rule(task)).first;
    if (known->second.product)
      return Nanoseconds(static_cast<int64_t>(static_cast<double>(duration.value) * known->second.factor));
    return shrunk(duration, edited_.timer()->kernel_floor(), known->second.factor);
  }

 private:
  struct Rule {
    bool product = false;
    double factor = 1;
  };

  Rule rule(TaskId task) const {
    const std::optional<TracedOp> op = edited_.op_of(task);
    if (!op || edited_.graph().phase(task) == StepPhase::update) return {};
    const OpClass cls = class_of(*op);
    if (to_.precision != edited_.variant.precision && in_half(*op)) return {};  // neither TF32 nor autocast changes it
    const std::optional<double> ratio = edited_.timer()->ratio(*op, edited_.variant, to_);
    if (ratio) return {true, *ratio};
    const bool half = to_.precision == Precision::amp_bf16 && edited_.variant.precision != Precision::amp_bf16;
    if (!half || stays_float32(*op, cls)) return {};
    if (cls == OpClass::rnn) return {true, 1.0 / 3};  // cuDNN: as a matrix product without a shape
    return {false, 0.5};
  }

  const EditableIteration& edited_;
  const Variant to_;
  std::unordered_map<uint64_t, Rule> rules_;
};

Status no_cost_model() { return Error{"the cost model is not there", "data folder", "train it: forerun train hybrid"}; }

Status change_variant(EditableIteration& edited, const Variant& to) {
  if (edited.timer() == nullptr) return no_cost_model();
  GraphEdit edit(edited.graph());
  Rescaler rescaled(edited, to);
  for (const TaskId task : select(edited.graph(), is_on_gpu())) {
    if (edited.graph().kind(task) != TaskKind::communication) edit.set_duration(task, rescaled(task));
  }
  const Status status = edited.commit(edit);
  if (status.ok()) edited.variant = to;
  return status;
}

// With the forward pass at hand the iteration is derived anew; false where that cannot be done.
bool derived_again(EditableIteration& edited, const TrainingSetup& to) {
  if (edited.model() == nullptr) return false;
  const Status status = change_setup(edited, to, edited.batch_factor);
  if (!status.ok()) {
    edited.assume("op by op, since the iteration could not be derived again: " + status.error().what);
    return false;
  }
  edited.variant = {to.precision, to.channels_last};
  edited.assume(
      edited.only_setup_changed() && !edited.is_traced()
          ? "the iteration derived again from its forward pass"
          : "the iteration derived again from its forward pass; each call's kernels times the cost model's ratio");
  return true;
}

// The casts of weights before products, and of their gradients behind them.
Status insert_casts(EditableIteration& edited) {
  const TaskGraph& graph = edited.graph();
  GraphEdit edit(graph);
  const Nanoseconds host = usual_host_op(graph);
  const NameId name = edit.name("cast to bfloat16");
  std::unordered_map<uint32_t, bool> seen;  // outermost calls that have their cast
  for (const TaskId kernel : select(graph, is_kind(TaskKind::kernel))) {
    const uint32_t call = graph.op_instance(kernel);
    if (call == kNoLink || seen.contains(call) || graph.phase(kernel) == StepPhase::update) continue;
    const std::optional<TracedOp> op = edited.op_of(kernel);
    if (!op) continue;
    const OpClass cls = class_of(*op);
    if ((cls != OpClass::gemm && cls != OpClass::convolution) || in_half(*op)) continue;
    seen[call] = true;
    TaskId launch;
    for (const Dependency& on : graph.dependencies(kernel)) {
      if (graph.kind(on.before) == TaskKind::launch) launch = on.before;
    }
    if (!launch.valid()) continue;
    int64_t weight = INT64_MAX;  // the smaller operand
    for (size_t i = 0; i < op->inputs.size(); ++i) {
      if (op->inputs[i].shape.size() >= 2) weight = std::min(weight, op->elements(i));
    }
    Task call_task = graph[launch];
    call_task.duration = host;
    call_task.gap = Nanoseconds(0);
    call_task.name = name;
    Task cast = graph[kernel];
    cast.name = name;
    cast.gap = Nanoseconds(1000);
    cast.duration = weight == INT64_MAX ? edited.timer()->kernel_floor()
                                        : edited.timer()->memory_time(6.0 * static_cast<double>(weight));
    const TaskId launched = edit.insert_before(launch, call_task);
    edit.depend(edit.insert_before(kernel, cast), {launched, Anchor::end, Nanoseconds(0)});
  }
  return edited.commit(edit);
}

// Under autocast the products run in bfloat16 as before; those that are left in float32 run on TF32 units.
Status tf32_beside_autocast(EditableIteration& edited) {
  edited.assume("autocast stays: products in bfloat16 are as before, those left in float32 change");
  const Precision recorded =
      edited.model() != nullptr ? edited.model()->setup.precision : traced_precision(edited.trace());
  if (recorded != Precision::amp_bf16) return {};  // autocast is itself a what-if: it has all products in bfloat16
  GraphEdit edit(edited.graph());
  const bool channels_last = edited.variant.channels_last;
  for (const TaskId task : select(edited.graph(), is_kind(TaskKind::kernel))) {
    const std::optional<TracedOp> op = edited.op_of(task);
    if (!op || class_of(*op) != OpClass::gemm || in_half(*op)) continue;
    const auto ratio = edited.timer()->ratio(*op, {Precision::fp32, channels_last}, {Precision::tf32, channels_last});
    if (ratio) edit.scale(std::vector<TaskId>{task}, *ratio);
  }
  return edited.commit(edit);
}

Status daydream_amp(EditableIteration& edited) {
  GraphEdit edit(edited.graph());
  for (const TaskId task : select(edited.graph(), is_kind(TaskKind::kernel))) {
    const std::optional<TracedOp> op = edited.op_of(task);
    const bool product = op && is_product(class_of(*op));
    edit.scale(std::vector<TaskId>{task}, product ? 1.0 / 3 : 1.0 / 2);
  }
  edited.assume("Daydream's rule: kernels of matrix products and convolutions take a third, all others half the time");
  return edited.commit(edit);
}

}  // namespace

Status apply_amp(EditableIteration& edited, const Parameters& parameters) {
  if (parameters.has("rule")) {
    if (parameters.text("rule") == "daydream") return daydream_amp(edited);
    return Error{"there is no rule '" + parameters.text("rule") + "'", "amp", "there is rule=daydream, or none"};
  }
  if (edited.timer() == nullptr) return no_cost_model();
  if (Status status = derive::check_precision(Precision::amp_bf16, edited.timer()->device()); !status.ok()) {
    return status.error().within("--apply amp");
  }
  if (edited.variant.precision == Precision::amp_bf16) {
    edited.assume("the iteration runs under autocast already: nothing changes");
    return {};
  }
  TrainingSetup to = edited.setup;
  to.precision = Precision::amp_bf16;
  if (derived_again(edited, to)) {
    edited.assume("bfloat16 by PyTorch's autocast rules, with its casts; the update stays in float32");
    return {};
  }
  const Status casts = insert_casts(edited);
  if (!casts.ok()) return casts;
  edited.assume("ops of autocast's list run in bfloat16; their time by the cost model's ratio for each shape");
  edited.assume("ops between them move half the bytes; layer norms, softmax, losses and the update stay in float32");
  edited.assume("one cast of each weight a pass, as dear for the host as a usual op of this trace");
  return change_variant(edited, {Precision::amp_bf16, edited.variant.channels_last});
}

Status apply_tf32(EditableIteration& edited, const Parameters&) {
  if (edited.timer() == nullptr) return no_cost_model();
  if (std::string caveat = derive::precision_caveat(Precision::tf32, edited.timer()->device()); !caveat.empty()) {
    edited.assume(std::move(caveat));
    return {};
  }
  edited.assume("float32 matrix products run on TF32 tensor cores; convolutions do so already (PyTorch's default)");
  if (edited.variant.precision == Precision::amp_bf16) return tf32_beside_autocast(edited);
  TrainingSetup to = edited.setup;
  to.precision = Precision::tf32;
  if (derived_again(edited, to)) return {};
  return change_variant(edited, {Precision::tf32, edited.variant.channels_last});
}

Status apply_channels_last(EditableIteration& edited, const Parameters&) {
  if (edited.timer() == nullptr) return no_cost_model();
  edited.assume("4-dimensional tensors in channels-last layout throughout");
  TrainingSetup to = edited.setup;
  to.channels_last = true;
  if (derived_again(edited, to)) return {};
  return change_variant(edited, {edited.variant.precision, true});
}

}  // namespace forerun::whatif
