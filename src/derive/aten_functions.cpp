// What models write as a torch.autograd.Function: ops of their own for the gradient, the input alone kept.
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

}  // namespace

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
