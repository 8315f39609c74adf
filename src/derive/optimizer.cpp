#include "derive/optimizer.h"

#include <map>
#include <string>

#include "derive/aten.h"
#include "derive/optimizers_by_tensor.h"

namespace forerun::derive {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kSmoothing = 0.99;  // RMSprop
constexpr double kEps = 1e-8;

// The columns of the slots that have gradients, as the foreach ops take them.
struct Lists {
  Values parameters, gradients, steps;
  std::vector<Values> moments;
};

Values joined(std::initializer_list<const Values*> lists) {
  Values all;
  for (const Values* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

Values like(Tracer& t, const Values& values) {
  Values made;
  for (const Value& v : values) made.push_back(t.fresh(v->dtype, v->sizes, preserved_strides(*v)));
  return made;
}

void foreach_in_place(Tracer& t, std::string_view name, std::initializer_list<const Values*> lists,
                      const Attributes& a = {}) {
  t.emit(name, joined(lists), {}, a);
}

// grads + alpha * parameters, into fresh tensors: classic weight decay.
Values decayed(Tracer& t, const Values& gradients, const Values& parameters, double weight_decay) {
  Values made = like(t, gradients);
  t.emit("aten._foreach_add.List", joined({&gradients, &parameters}), made, {{"alpha", weight_decay}});
  return made;
}

// Steps live on the CPU and are counted up by a CPU scalar.
void count_steps(Tracer& t, const Values& steps) {
  Value one = t.fresh(DType::float32, {}, {}, false);
  t.emit("aten.lift_fresh.default", {one}, {one});
  const Values ones = {one};
  foreach_in_place(t, "aten._foreach_add_.Tensor", {&steps, &ones}, {{"alpha", 1.0}});
}

void foreach_sgd(Tracer& t, Lists& l, const OptimizerSpec& spec) {
  if (spec.weight_decay != 0) l.gradients = decayed(t, l.gradients, l.parameters, spec.weight_decay);
  if (spec.momentum != 0) {
    foreach_in_place(t, "aten._foreach_mul_.Scalar", {&l.moments[0]}, {{"scalar", spec.momentum}});
    foreach_in_place(t, "aten._foreach_add_.List", {&l.moments[0], &l.gradients});
    l.gradients = l.moments[0];
  }
  foreach_in_place(t, "aten._foreach_add_.List", {&l.parameters, &l.gradients}, {{"alpha", -spec.learning_rate}});
}

void foreach_adam(Tracer& t, Lists& l, const OptimizerSpec& spec) {
  count_steps(t, l.steps);
  if (spec.weight_decay != 0) {
    if (spec.kind == OptimizerKind::adamw) {
      foreach_in_place(t, "aten._foreach_mul_.Scalar", {&l.parameters},
                       {{"scalar", 1 - spec.learning_rate * spec.weight_decay}});
    } else {
      l.gradients = decayed(t, l.gradients, l.parameters, spec.weight_decay);
    }
  }
  const Values& mean = l.moments[0];
  const Values& square = l.moments[1];
  foreach_in_place(t, "aten._foreach_lerp_.Scalar", {&mean, &l.gradients}, {{"weight", 1 - kBeta1}});
  foreach_in_place(t, "aten._foreach_mul_.Scalar", {&square}, {{"scalar", kBeta2}});
  foreach_in_place(t, "aten._foreach_addcmul_.Scalar", {&square, &l.gradients, &l.gradients}, {{"value", 1 - kBeta2}});
  l.gradients.clear();
  for (int correction = 0; correction < 2; ++correction) {
    for (const Value& step : l.steps) aten::read_on_host(t, step);
  }
  const Values root = like(t, square);
  t.emit("aten._foreach_sqrt.default", square, root);
  foreach_in_place(t, "aten._foreach_div_.ScalarList", {&root});
  foreach_in_place(t, "aten._foreach_add_.Scalar", {&root}, {{"scalar", kEps}});
  foreach_in_place(t, "aten._foreach_addcdiv_.ScalarList", {&l.parameters, &mean, &root});
}

void foreach_rmsprop(Tracer& t, Lists& l, const OptimizerSpec& spec) {
  count_steps(t, l.steps);
  if (spec.weight_decay != 0) l.gradients = decayed(t, l.gradients, l.parameters, spec.weight_decay);
  const Values& square = l.moments[0];
  foreach_in_place(t, "aten._foreach_mul_.Scalar", {&square}, {{"scalar", kSmoothing}});
  foreach_in_place(t, "aten._foreach_addcmul_.Scalar", {&square, &l.gradients, &l.gradients},
                   {{"value", 1 - kSmoothing}});
  const Values root = like(t, square);
  t.emit("aten._foreach_sqrt.default", square, root);
  foreach_in_place(t, "aten._foreach_add_.Scalar", {&root}, {{"scalar", kEps}});
  if (spec.momentum != 0) {
    const Values& buffer = l.moments[1];
    foreach_in_place(t, "aten._foreach_mul_.Scalar", {&buffer}, {{"scalar", spec.momentum}});
    foreach_in_place(t, "aten._foreach_addcdiv_.Scalar", {&buffer, &l.gradients, &root}, {{"value", 1.0}});
    foreach_in_place(t, "aten._foreach_add_.List", {&l.parameters, &buffer}, {{"alpha", -spec.learning_rate}});
  } else {
    foreach_in_place(t, "aten._foreach_addcdiv_.Scalar", {&l.parameters, &l.gradients, &root},
                     {{"value", -spec.learning_rate}});
  }
}

void foreach_adagrad(Tracer& t, Lists& l, const OptimizerSpec& spec) {
  count_steps(t, l.steps);
  if (spec.weight_decay != 0) l.gradients = decayed(t, l.gradients, l.parameters, spec.weight_decay);
  for (const Value& step : l.steps) aten::read_on_host(t, step);
  const Values& sum = l.moments[0];
  foreach_in_place(t, "aten._foreach_addcmul_.Scalar", {&sum, &l.gradients, &l.gradients}, {{"value", 1.0}});
  const Values root = like(t, sum);
  t.emit("aten._foreach_sqrt.default", sum, root);
  foreach_in_place(t, "aten._foreach_add_.Scalar", {&root}, {{"scalar", 1e-10}});
  Values numerator = l.gradients;
  if (spec.weight_decay != 0) {
    foreach_in_place(t, "aten._foreach_mul_.ScalarList", {&numerator});
  } else {
    numerator = like(t, l.gradients);
    t.emit("aten._foreach_mul.ScalarList", l.gradients, numerator);
  }
  foreach_in_place(t, "aten._foreach_addcdiv_.Scalar", {&l.parameters, &numerator, &root}, {{"value", 1.0}});
}

void fused_update(Tracer& t, const Lists& l, const OptimizerSpec& spec) {
  const Attributes attributes = {{"lr", spec.learning_rate}, {"weight_decay", spec.weight_decay}};
  if (spec.kind == OptimizerKind::sgd) {
    if (l.moments.empty()) {
      foreach_in_place(t, "aten._fused_sgd_.default", {&l.parameters, &l.gradients}, attributes);
    } else {
      foreach_in_place(t, "aten._fused_sgd_.default", {&l.parameters, &l.gradients, &l.moments[0]}, attributes);
    }
    return;
  }
  foreach_in_place(t, "aten._foreach_add_.Scalar", {&l.steps}, {{"scalar", int64_t{1}}});
  if (spec.kind == OptimizerKind::adagrad) {
    foreach_in_place(t, "aten._fused_adagrad_.default", {&l.parameters, &l.gradients, &l.moments[0], &l.steps},
                     attributes);
    return;
  }
  const std::string_view name =
      spec.kind == OptimizerKind::adamw ? "aten._fused_adamw_.default" : "aten._fused_adam_.default";
  foreach_in_place(t, name, {&l.parameters, &l.gradients, &l.moments[0], &l.moments[1], &l.steps}, attributes);
}

// --- one tensor at a time

void in_place(Tracer& t, std::string_view name, const Values& inputs, const Attributes& attributes) {
  t.emit(name, inputs, {inputs[0]}, attributes);
}

Value decayed(Tracer& t, const Value& g, const Value& parameter, double weight_decay) {
  return aten::pointwise(t, "aten.add.Tensor", {g, parameter}, {{"alpha", weight_decay}});
}

void single_sgd(Tracer& t, const ParameterSlot& slot, Value g, const OptimizerSpec& spec) {
  if (spec.weight_decay != 0) g = decayed(t, g, slot.parameter, spec.weight_decay);
  if (spec.momentum != 0) {
    in_place(t, "aten.mul_.Tensor", {slot.moments[0]}, {{"other", spec.momentum}});
    in_place(t, "aten.add_.Tensor", {slot.moments[0], g}, {});
    g = slot.moments[0];
  }
  in_place(t, "aten.add_.Tensor", {slot.parameter, g}, {{"alpha", -spec.learning_rate}});
}

void single_adam(Tracer& t, const ParameterSlot& slot, Value g, const OptimizerSpec& spec) {
  in_place(t, "aten.add_.Tensor", {slot.step}, {{"other", int64_t{1}}});
  if (spec.weight_decay != 0) {
    if (spec.kind == OptimizerKind::adamw) {
      in_place(t, "aten.mul_.Tensor", {slot.parameter}, {{"other", 1 - spec.learning_rate * spec.weight_decay}});
    } else {
      g = decayed(t, g, slot.parameter, spec.weight_decay);
    }
  }
  in_place(t, "aten.lerp_.Scalar", {slot.moments[0], g}, {{"weight", 1 - kBeta1}});
  in_place(t, "aten.mul_.Tensor", {slot.moments[1]}, {{"other", kBeta2}});
  in_place(t, "aten.addcmul_.default", {slot.moments[1], g, g}, {{"value", 1 - kBeta2}});
  aten::read_on_host(t, slot.step);
  const Value root = aten::pointwise(t, "aten.sqrt.default", {slot.moments[1]});
  const Value scaled = aten::pointwise(t, "aten.div.Tensor", {root}, {{"other", 1.0}});
  in_place(t, "aten.add_.Tensor", {scaled}, {{"other", kEps}});
  in_place(t, "aten.addcdiv_.default", {slot.parameter, slot.moments[0], scaled}, {{"value", -spec.learning_rate}});
}

void single_rmsprop(Tracer& t, const ParameterSlot& slot, Value g, const OptimizerSpec& spec) {
  in_place(t, "aten.add_.Tensor", {slot.step}, {{"other", int64_t{1}}});
  if (spec.weight_decay != 0) g = decayed(t, g, slot.parameter, spec.weight_decay);
  in_place(t, "aten.mul_.Tensor", {slot.moments[0]}, {{"other", kSmoothing}});
  in_place(t, "aten.addcmul_.default", {slot.moments[0], g, g}, {{"value", 1 - kSmoothing}});
  const Value root = aten::pointwise(t, "aten.sqrt.default", {slot.moments[0]});
  in_place(t, "aten.add_.Tensor", {root}, {{"other", kEps}});
  if (spec.momentum != 0) {
    in_place(t, "aten.mul_.Tensor", {slot.moments[1]}, {{"other", spec.momentum}});
    in_place(t, "aten.addcdiv_.default", {slot.moments[1], g, root}, {});
    in_place(t, "aten.add_.Tensor", {slot.parameter, slot.moments[1]}, {{"alpha", -spec.learning_rate}});
  } else {
    in_place(t, "aten.addcdiv_.default", {slot.parameter, g, root}, {{"value", -spec.learning_rate}});
  }
}

void single_adagrad(Tracer& t, const ParameterSlot& slot, Value g, const OptimizerSpec& spec) {
  in_place(t, "aten.add_.Tensor", {slot.step}, {{"other", int64_t{1}}});
  aten::read_on_host(t, slot.step);
  if (spec.weight_decay != 0) g = decayed(t, g, slot.parameter, spec.weight_decay);
  in_place(t, "aten.addcmul_.default", {slot.moments[0], g, g}, {{"value", 1.0}});
  const Value root = aten::pointwise(t, "aten.sqrt.default", {slot.moments[0]});
  in_place(t, "aten.add_.Tensor", {root}, {{"other", 1e-10}});
  in_place(t, "aten.addcdiv_.default", {slot.parameter, g, root}, {{"value", -spec.learning_rate}});
}

void single_update(Tracer& t, const ParameterSlot& slot, const Value& g, const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::sgd: return single_sgd(t, slot, g, spec);
    case OptimizerKind::adam:
    case OptimizerKind::adamw: return single_adam(t, slot, g, spec);
    case OptimizerKind::rmsprop: return single_rmsprop(t, slot, g, spec);
    case OptimizerKind::adagrad: return single_adagrad(t, slot, g, spec);
    default: return update_by_tensor(t, slot, g, spec);
  }
}

void foreach_update(Tracer& t, Lists& lists, const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::sgd: return foreach_sgd(t, lists, spec);
    case OptimizerKind::adam:
    case OptimizerKind::adamw: return foreach_adam(t, lists, spec);
    case OptimizerKind::rmsprop: return foreach_rmsprop(t, lists, spec);
    case OptimizerKind::adagrad: return foreach_adagrad(t, lists, spec);
    default: break;
  }
}

std::vector<std::string_view> moment_names(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::sgd:
      return spec.momentum != 0 ? std::vector<std::string_view>{"momentum_buffer"} : std::vector<std::string_view>{};
    case OptimizerKind::adam:
    case OptimizerKind::adamw: return {"exp_avg", "exp_avg_sq"};
    case OptimizerKind::rmsprop:
      return spec.momentum != 0 ? std::vector<std::string_view>{"square_avg", "momentum_buffer"}
                                : std::vector<std::string_view>{"square_avg"};
    case OptimizerKind::adagrad: return {"sum"};
    default: break;
  }
  return {};
}

}  // namespace

namespace {

// Muon's parameters that are no matrices.
OptimizerSpec beside_muon(const OptimizerSpec& spec) {
  OptimizerSpec other = spec;
  other.kind = OptimizerKind::adamw;
  other.impl = OptimizerImpl::foreach;
  return other;
}

ParameterSlot make_slot(Tracer& t, const Value& parameter, const OptimizerSpec& spec) {
  ParameterSlot slot{.parameter = parameter, .step = nullptr, .moments = {}};
  if (goes_by_tensor(spec.kind)) {
    make_state_by_tensor(t, spec, slot);
    return slot;
  }
  const bool steps_on_gpu = available_impl(spec) == OptimizerImpl::fused;
  if (spec.kind != OptimizerKind::sgd) slot.step = t.root(Root::state, "step", DType::float32, {}, {}, steps_on_gpu);
  for (const std::string_view name : moment_names(spec)) {
    slot.moments.push_back(
        t.root(Root::state, name, parameter->dtype, parameter->sizes, preserved_strides(*parameter)));
  }
  return slot;
}

// The slots that have gradients, in lists of one type each, as torch.optim groups them.
void update_in_lists(Tracer& t, const std::vector<ParameterSlot>& slots, const OptimizerSpec& spec) {
  std::map<DType, Lists> by_type;
  for (const ParameterSlot& slot : slots) {
    const Value g = t.gradient_of(slot.parameter);
    if (!g) continue;
    Lists& lists = by_type[slot.parameter->dtype];
    lists.moments.resize(moment_names(spec).size());
    lists.parameters.push_back(slot.parameter);
    lists.gradients.push_back(g);
    if (slot.step) lists.steps.push_back(slot.step);
    for (size_t i = 0; i < slot.moments.size(); ++i) lists.moments[i].push_back(slot.moments[i]);
  }
  for (auto& [type, lists] : by_type) {
    if (available_impl(spec) == OptimizerImpl::fused) {
      fused_update(t, lists, spec);
    } else {
      foreach_update(t, lists, spec);
    }
  }
}

}  // namespace

OptimizerImpl available_impl(const OptimizerSpec& spec) {
  if (goes_by_tensor(spec.kind)) return OptimizerImpl::forloop;
  const bool fusable = spec.kind != OptimizerKind::rmsprop;
  return spec.impl == OptimizerImpl::fused && !fusable ? OptimizerImpl::foreach : spec.impl;
}

std::vector<ParameterSlot> make_optimizer_state(Tracer& t, const Values& parameters, const OptimizerSpec& spec,
                                                const std::function<bool(const Value&)>& is_matrix) {
  std::vector<ParameterSlot> slots;
  for (const Value& parameter : parameters) {
    const bool matrix = is_matrix && is_matrix(parameter);
    const bool aside = spec.kind == OptimizerKind::muon && !matrix;
    slots.push_back(make_slot(t, parameter, aside ? beside_muon(spec) : spec));
    slots.back().matrix = matrix;
  }
  return slots;
}

void update(Tracer& t, const std::vector<ParameterSlot>& slots, const OptimizerSpec& spec) {
  if (available_impl(spec) != OptimizerImpl::forloop) return update_in_lists(t, slots, spec);
  std::vector<ParameterSlot> aside;
  for (const ParameterSlot& slot : slots) {
    const Value g = t.gradient_of(slot.parameter);
    if (!g) continue;
    if (spec.kind == OptimizerKind::muon && !slot.matrix) {
      aside.push_back(slot);
    } else {
      single_update(t, slot, g, spec);
    }
  }
  if (!aside.empty()) update_in_lists(t, aside, beside_muon(spec));
}

}  // namespace forerun::derive
