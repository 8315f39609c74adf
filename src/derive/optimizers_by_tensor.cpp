#include "derive/optimizers_by_tensor.h"

#include <algorithm>

#include "derive/aten.h"

namespace forerun::derive {
namespace {

constexpr int64_t kLeastQuantised = 4096;  // elements: smaller tensors keep float32 moments
constexpr int64_t kQuantisedBlock = 256;   // elements that share a scale
constexpr int kNewtonSchulzSteps = 5;

Value overwrite(Tracer& t, std::string_view name, const Values& inputs, const Attributes& attributes = {}) {
  t.emit(name, inputs, {inputs[0]}, attributes);
  return inputs[0];
}

Value norm(Tracer& t, const Value& x, const Shape& dims) {
  Shape sizes = dims.empty() ? Shape{} : x->sizes;
  for (const int64_t dim : dims) sizes[wrap_dim(dim, sizes.size())] = 1;
  Value y = t.fresh(x->dtype, sizes);
  Attributes attributes = {{"ord", 2.0}};
  if (!dims.empty()) {
    attributes.set("dim", dims);
    attributes.set("keepdim", true);
  }
  t.emit("aten.linalg_vector_norm.default", {x}, {y}, attributes);
  return y;
}

void count_step(Tracer& t, const Value& step) {
  overwrite(t, "aten.add_.Tensor", {step}, {{"other", int64_t{1}}});
  aten::read_on_host(t, step);
}

// The mean square along one dimension, into its running mean.
void follow_squares(Tracer& t, const Value& gradient, int64_t dim, const Value& mean) {
  const Value squares = norm(t, gradient, {dim});
  overwrite(t, "aten.pow_.Scalar", {squares}, {{"exponent", int64_t{2}}});
  overwrite(t, "aten.div_.Tensor", {squares}, {{"other", gradient->sizes[wrap_dim(dim, gradient->sizes.size())]}});
  overwrite(t, "aten.lerp_.Scalar", {mean, squares}, {{"weight", 0.5}});
}

void adafactor(Tracer& t, const ParameterSlot& slot, const Value& gradient, const OptimizerSpec& spec) {
  count_step(t, slot.step);
  aten::read_on_host(t, norm(t, slot.parameter, {}));
  if (spec.weight_decay != 0) overwrite(t, "aten.mul_.Tensor", {slot.parameter}, {{"other", 1.0}});
  Value estimate;
  if (gradient->sizes.size() > 1) {
    follow_squares(t, gradient, -1, slot.moments[0]);
    follow_squares(t, gradient, -2, slot.moments[1]);
    estimate = aten::matmul(t, slot.moments[0], slot.moments[1]);
    Shape mean_sizes = slot.moments[0]->sizes;
    mean_sizes[mean_sizes.size() - 2] = 1;
    const Value mean = t.fresh(slot.moments[0]->dtype, mean_sizes);
    t.emit("aten.mean.dim", {slot.moments[0]}, {mean}, {{"dim", Shape{-2}}, {"keepdim", true}});
    overwrite(t, "aten.clamp_.default", {mean});
    overwrite(t, "aten.div_.Tensor", {estimate, mean});
  } else {
    const Value squares = aten::pointwise(t, "aten.mul.Tensor", {gradient, gradient});
    overwrite(t, "aten.lerp_.Scalar", {slot.moments[0], squares}, {{"weight", 0.5}});
    estimate = t.fresh(squares->dtype, squares->sizes);
    t.emit("aten.clone.default", {slot.moments[0]}, {estimate});
  }
  overwrite(t, "aten.clamp_.default", {estimate});
  overwrite(t, "aten.rsqrt_.default", {estimate});
  overwrite(t, "aten.mul_.Tensor", {estimate, gradient});
  aten::read_on_host(t, norm(t, estimate, {}));
  overwrite(t, "aten.add_.Tensor", {slot.parameter, estimate}, {{"alpha", -spec.learning_rate}});
}

void lion(Tracer& t, const ParameterSlot& slot, const Value& gradient, const OptimizerSpec& spec) {
  if (spec.weight_decay != 0) overwrite(t, "aten.mul_.Tensor", {slot.parameter}, {{"other", 1.0}});
  Value update = t.fresh(slot.moments[0]->dtype, slot.moments[0]->sizes, preserved_strides(*slot.moments[0]));
  t.emit("aten.clone.default", {slot.moments[0]}, {update});
  overwrite(t, "aten.mul_.Tensor", {update}, {{"other", 0.9}});
  update = aten::pointwise(t, "aten.add.Tensor", {update, gradient}, {{"alpha", 0.1}});
  overwrite(t, "aten.sign_.default", {update});
  overwrite(t, "aten.add_.Tensor", {slot.parameter, update}, {{"alpha", -spec.learning_rate}});
  overwrite(t, "aten.mul_.Tensor", {slot.moments[0]}, {{"other", 0.99}});
  overwrite(t, "aten.add_.Tensor", {slot.moments[0], gradient}, {{"alpha", 0.01}});
}

void adamw_8bit(Tracer& t, const ParameterSlot& slot, const Value& gradient) {
  Values operands = {gradient, slot.parameter};
  operands.insert(operands.end(), slot.moments.begin(), slot.moments.end());
  const bool quantised = slot.moments.size() > 2;
  Values written = {slot.parameter, slot.moments[0], slot.moments[1]};
  t.emit(quantised ? "bitsandbytes.optimizer_update_8bit_blockwise.default"
                   : "bitsandbytes.optimizer_update_32bit.default",
         operands, written);
}

// Newton-Schulz iterations towards the nearest orthogonal matrix, in bfloat16, on the side with fewer rows.
Value orthogonalised(Tracer& t, const Value& matrix) {
  Value x = aten::to_copy(t, matrix, DType::bfloat16);
  const bool tall = x->sizes[0] > x->sizes[1];
  if (tall) x = aten::permute(t, x, {1, 0});
  const Value length = norm(t, x, {});
  const Value bounded = aten::pointwise(t, "aten.clamp.default", {length}, {{"min", 1e-7}});
  overwrite(t, "aten.div_.Tensor", {x, bounded});
  for (int i = 0; i < kNewtonSchulzSteps; ++i) {
    const Value gram = aten::mm(t, x, aten::permute(t, x, {1, 0}));
    const Value polynomial = aten::addmm(t, gram, gram, gram);
    x = aten::addmm(t, x, polynomial, x);
  }
  return tall ? aten::permute(t, x, {1, 0}) : x;
}

void muon(Tracer& t, const ParameterSlot& slot, const Value& gradient, const OptimizerSpec& spec) {
  overwrite(t, "aten.lerp_.Scalar", {slot.moments[0], gradient}, {{"weight", 0.05}});
  Value update = t.fresh(gradient->dtype, gradient->sizes);
  t.emit("aten.lerp.Scalar", {gradient, slot.moments[0]}, {update}, {{"weight", 0.95}});
  update = orthogonalised(t, update);
  overwrite(t, "aten.mul_.Tensor", {slot.parameter}, {{"other", 1.0}});
  overwrite(t, "aten.add_.Tensor", {slot.parameter, update}, {{"alpha", -spec.learning_rate}});
}

}  // namespace

bool goes_by_tensor(OptimizerKind kind) {
  return kind == OptimizerKind::adafactor || kind == OptimizerKind::lion || kind == OptimizerKind::adamw_8bit ||
         kind == OptimizerKind::muon;
}

void make_state_by_tensor(Tracer& t, const OptimizerSpec& spec, ParameterSlot& slot) {
  const Value& p = slot.parameter;
  const auto add = [&](std::string_view name, DType dtype, const Shape& sizes) {
    slot.moments.push_back(t.root(Root::state, name, dtype, sizes, contiguous_strides(sizes)));
  };
  switch (spec.kind) {
    case OptimizerKind::adafactor: {
      slot.step = t.root(Root::state, "step", DType::float32, {}, {}, false);
      if (p->sizes.size() < 2) return add("variance", p->dtype, p->sizes);
      Shape rows = p->sizes;
      rows.back() = 1;
      Shape columns = p->sizes;
      columns[columns.size() - 2] = 1;
      add("row_var", p->dtype, rows);
      return add("col_var", p->dtype, columns);
    }
    case OptimizerKind::adamw_8bit: {
      const int64_t count = element_count(p->sizes);
      const DType dtype = count < kLeastQuantised ? DType::float32 : DType::uint8;
      add("state1", dtype, p->sizes);
      add("state2", dtype, p->sizes);
      if (dtype == DType::float32) return;
      const int64_t blocks = (count + kQuantisedBlock - 1) / kQuantisedBlock;
      add("absmax1", DType::float32, {blocks});
      return add("absmax2", DType::float32, {blocks});
    }
    case OptimizerKind::lion: return add("exp_avg", p->dtype, p->sizes);
    case OptimizerKind::muon: return add("momentum_buffer", p->dtype, p->sizes);
    default: return;
  }
}

void update_by_tensor(Tracer& t, const ParameterSlot& slot, const Value& gradient, const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::adafactor: return adafactor(t, slot, gradient, spec);
    case OptimizerKind::lion: return lion(t, slot, gradient, spec);
    case OptimizerKind::adamw_8bit: return adamw_8bit(t, slot, gradient);
    case OptimizerKind::muon: return muon(t, slot, gradient, spec);
    default: return;
  }
}

}  // namespace forerun::derive
