#include "derive/update_steps.h"

#include "derive/aten.h"

namespace forerun::derive {
namespace {

Values copies_of(Tracer& t, const Values& values) {
  Values copies;
  for (const Value& v : values)
    copies.push_back(t.root(Root::state, "average", v->dtype, v->sizes, preserved_strides(*v)));
  return copies;
}

}  // namespace

LossScaler::LossScaler(Tracer& tracer)
    : t_(tracer),
      scale_(tracer.root(Root::state, "scale", DType::float32, {}, {})),
      growth_(tracer.root(Root::state, "growth_tracker", DType::int32, {}, {})) {}

Value LossScaler::scale(const Value& loss) { return aten::mul(t_, loss, scale_); }

void LossScaler::unscale(const Values& gradients, bool divide) {
  Value inverse;
  if (divide) {
    const Value wide = aten::to_copy(t_, scale_, DType::float64);
    inverse = aten::to_copy(t_, aten::pointwise(t_, "aten.reciprocal.default", {wide}), DType::float32);
  } else {
    inverse = aten::create(t_, "aten.full.default", {}, DType::float32);
  }
  found_ = aten::create(t_, "aten.full.default", {}, DType::float32);
  Values operands = gradients;
  operands.push_back(found_);
  operands.push_back(inverse);
  t_.emit("aten._amp_foreach_non_finite_check_and_unscale_.default", operands, {});
}

void LossScaler::wait_for_finding(bool fused) {
  if (!fused) return aten::read_on_host(t_, found_);
  found_ = aten::pointwise(t_, "aten.add.Tensor", {found_}, {{"other", int64_t{0}}});
  aten::pointwise(t_, "aten.mul.Tensor", {scale_}, {{"other", int64_t{1}}});
}

void LossScaler::update() {
  t_.emit("aten._amp_update_scale_.default", {scale_, growth_, found_}, {scale_},
          {{"scale_growth_factor", 2.0}, {"scale_backoff_factor", 0.5}, {"growth_interval", int64_t{2000}}});
  found_ = nullptr;
}

void clip_gradients(Tracer& t, const Values& gradients) {
  if (gradients.empty()) return;
  Values norms;
  for (const Value& g : gradients) norms.push_back(t.fresh(g->dtype, {}));
  t.emit("aten._foreach_norm.Scalar", gradients, norms, {{"ord", 2.0}});
  const auto count = static_cast<int64_t>(norms.size());
  const Value stacked = t.fresh(norms.front()->dtype, {count});
  t.emit("aten.stack.default", norms, {stacked});
  norms.clear();
  const Value total = t.fresh(stacked->dtype, {});
  t.emit("aten.linalg_vector_norm.default", {stacked}, {total}, {{"ord", 2.0}});
  Value factor = aten::pointwise(t, "aten.add.Tensor", {total}, {{"other", 1e-6}});
  factor = aten::pointwise(t, "aten.reciprocal.default", {factor});
  factor = aten::pointwise(t, "aten.mul.Tensor", {factor}, {{"other", 1.0}});
  factor = aten::pointwise(t, "aten.clamp.default", {factor}, {{"max", 1.0}});
  Values operands = gradients;
  operands.push_back(factor);
  t.emit("aten._foreach_mul_.Tensor", operands, {});
}

MovingAverage::MovingAverage(Tracer& t, const Values& weights, const Values& buffers)
    : t_(t),
      weights_(weights),
      buffers_(buffers),
      averages_(copies_of(t, weights)),
      copies_(copies_of(t, buffers)),
      count_(t.root(Root::state, "n_averaged", DType::int64, {}, {})) {}

void MovingAverage::update() {
  aten::read_on_host(t_, aten::pointwise(t_, "aten.eq.Scalar", {count_}, {{"other", int64_t{0}}}, DType::boolean));
  aten::read_on_host(t_, aten::pointwise(t_, "aten.gt.Scalar", {count_}, {{"other", int64_t{0}}}, DType::boolean));
  Values operands = averages_;
  operands.insert(operands.end(), weights_.begin(), weights_.end());
  t_.emit("aten._foreach_lerp_.Scalar", operands, {}, {{"weight", 1e-3}});
  for (size_t i = 0; i < buffers_.size(); ++i) {
    t_.emit("aten.copy_.default", {copies_[i], buffers_[i]}, {copies_[i]});
  }
  t_.emit("aten.add_.Tensor", {count_}, {count_}, {{"other", int64_t{1}}});
}

}  // namespace forerun::derive
