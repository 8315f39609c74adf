// What some models alone do: a torch.autograd.Function with ops of its own for the gradient, rotations as complex products.
#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

Value times(Tracer& t, const Value& x, double factor) {
  return pointwise(t, "aten.mul.Tensor", {x}, {{"other", factor}});
}
Value times(Tracer& t, const Value& a, const Value& b) { return pointwise(t, "aten.mul.Tensor", {a, b}); }
Value plus(Tracer& t, const Value& x, double addend) {
  return pointwise(t, "aten.add.Tensor", {x}, {{"other", addend}});
}

constexpr double kRootOfTwoOverPi = 0.79788456;

// tanh(sqrt(2 / pi) * x * (1 + 0.044715 * x * x)), each intermediate dropped where Python drops it.
Value gelu_tanh(Tracer& t, const Value& x) {
  Value left = times(t, x, kRootOfTwoOverPi);
  Value right = times(t, x, 0.044715);
  right = times(t, right, x);
  right = plus(t, right, 1);
  left = times(t, left, right);
  right = nullptr;
  return pointwise(t, "aten.tanh.default", {left});
}

Value bloom_gelu_gradient(Tracer& t, const Value& x, const Value& gradient) {
  const Value tanh = gelu_tanh(t, x);
  Value slope = times(t, x, 0.5);
  Value rest = times(t, tanh, tanh);
  rest = pointwise(t, "aten.rsub.Scalar", {rest}, {{"other", int64_t{1}}});
  Value inner = times(t, x, 0.1070322243);
  inner = times(t, inner, x);
  inner = plus(t, inner, kRootOfTwoOverPi);
  rest = times(t, rest, inner);
  inner = nullptr;
  slope = times(t, slope, rest);
  rest = plus(t, tanh, 1);
  rest = times(t, rest, 0.5);
  slope = pointwise(t, "aten.add.Tensor", {slope, rest});
  rest = nullptr;
  return times(t, slope, gradient);
}

// Pairs of numbers as complex ones, and back.
Value as_complex(Tracer& t, const Value& pairs) {
  Shape strides(pairs->strides.begin(), pairs->strides.end() - 1);
  for (int64_t& stride : strides) stride /= 2;
  Value y = t.alias(pairs, DType::complex64, Shape(pairs->sizes.begin(), pairs->sizes.end() - 1), std::move(strides));
  t.emit("aten.view_as_complex.default", {pairs}, {y});
  return y;
}
Value as_pairs(Tracer& t, const Value& x) {
  Shape sizes = x->sizes;
  Shape strides = x->strides;
  for (int64_t& stride : strides) stride *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  Value y = t.alias(x, DType::float32, std::move(sizes), std::move(strides));
  t.emit("aten.view_as_real.default", {x}, {y});
  return y;
}
Value complex_product(Tracer& t, const Value& pairs, const Value& table) {
  return as_pairs(t, pointwise(t, "aten.mul.Tensor", {as_complex(t, pairs), table}, {}, DType::complex64));
}

}  // namespace

Value rotate_complex(Tracer& t, const Value& pairs, const Value& table) {
  Value y = complex_product(t, pairs, table);
  if (Node* node = t.record("ViewAsRealBackward0", {pairs}, {y}); node != nullptr) {
    node->backward = [&t, table](Values gradients) {
      const Value turned = t.alias(table, table->dtype, table->sizes, table->strides);
      t.emit("aten._conj.default", {table}, {turned});
      const Value conjugate = t.fresh(table->dtype, table->sizes);
      t.emit("aten.clone.default", {turned}, {conjugate});
      return Values{complex_product(t, gradients[0], conjugate)};
    };
  }
  return y;
}

Value bloom_gelu(Tracer& t, const Value& x) {
  const Value half = times(t, x, 0.5);
  Value y = gelu_tanh(t, x);
  y = plus(t, y, 1);
  y = times(t, half, y);
  if (Node* node = t.record("GeLUFunctionBackward", {x}, {y}); node != nullptr) {
    node->backward = [&t, x](Values gradients) { return Values{bloom_gelu_gradient(t, x, gradients[0])}; };
  }
  return y;
}

}  // namespace forerun::derive::aten
