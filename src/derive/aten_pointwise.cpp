// Elementwise ops: arithmetic, activations, dropout.
#include <algorithm>
#include <array>
#include <cmath>

#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

Shape broadcast(const Values& inputs) {
  size_t rank = 0;
  for (const Value& v : inputs) rank = std::max(rank, v->sizes.size());
  Shape sizes(rank, 1);
  for (const Value& v : inputs) {
    for (size_t i = 0; i < v->sizes.size(); ++i) {
      int64_t& extent = sizes[rank - v->sizes.size() + i];
      if (extent == 1) extent = v->sizes[i];
    }
  }
  return sizes;
}

// Type promotion: tensors of rank 0 give way to those with dimensions of the same category.
DType result_type(const Values& inputs) {
  std::optional<DType> with_dims;
  std::optional<DType> scalars;
  for (const Value& v : inputs) {
    std::optional<DType>& slot = v->sizes.empty() ? scalars : with_dims;
    slot = slot ? promote(*slot, v->dtype) : v->dtype;
  }
  if (!with_dims) return *scalars;
  if (scalars && is_floating(*scalars) && !is_floating(*with_dims)) return *scalars;
  return *with_dims;
}

// How the gradient of a one-input op is computed, and what it keeps.
enum class Keeps : uint8_t { nothing, input, result };
struct UnaryRule {
  std::string_view op;    // without overload: "aten.gelu"
  std::string_view node;  // "GeluBackward0"
  Keeps keeps;
  std::string_view backward;  // one op of gradient and kept tensor; "" for a rule written out in unary_gradient
};

constexpr std::array kUnaryRules = {
    UnaryRule{"aten.relu", "ReluBackward0", Keeps::result, "aten.threshold_backward.default"},
    UnaryRule{"aten.sigmoid", "SigmoidBackward0", Keeps::result, "aten.sigmoid_backward.default"},
    UnaryRule{"aten.tanh", "TanhBackward0", Keeps::result, "aten.tanh_backward.default"},
    UnaryRule{"aten.gelu", "GeluBackward0", Keeps::input, "aten.gelu_backward.default"},
    UnaryRule{"aten.silu", "SiluBackward0", Keeps::input, "aten.silu_backward.default"},
    UnaryRule{"aten.mish", "MishBackward0", Keeps::input, "aten.mish_backward.default"},
    UnaryRule{"aten.hardswish", "HardswishBackward0", Keeps::input, "aten.hardswish_backward.default"},
    UnaryRule{"aten.hardsigmoid", "HardsigmoidBackward0", Keeps::input, "aten.hardsigmoid_backward.default"},
    UnaryRule{"aten.hardtanh", "HardtanhBackward0", Keeps::input, "aten.hardtanh_backward.default"},
    UnaryRule{"aten.leaky_relu", "LeakyReluBackward0", Keeps::input, "aten.leaky_relu_backward.default"},
    UnaryRule{"aten.elu", "EluBackward0", Keeps::input, "aten.elu_backward.default"},
    UnaryRule{"aten.selu", "SeluBackward0", Keeps::result, "aten.elu_backward.default"},
    UnaryRule{"aten.softplus", "SoftplusBackward0", Keeps::input, "aten.softplus_backward.default"},
    UnaryRule{"aten.log_sigmoid_forward", "LogSigmoidBackward0", Keeps::input, "aten.log_sigmoid_backward.default"},
    UnaryRule{"aten.exp", "ExpBackward0", Keeps::result, ""},
    UnaryRule{"aten.sqrt", "SqrtBackward0", Keeps::result, ""},
    UnaryRule{"aten.rsqrt", "RsqrtBackward0", Keeps::result, ""},
    UnaryRule{"aten.reciprocal", "ReciprocalBackward0", Keeps::result, ""},
    UnaryRule{"aten.log", "LogBackward0", Keeps::input, ""},
    UnaryRule{"aten.erf", "ErfBackward0", Keeps::input, ""},
    UnaryRule{"aten.sin", "SinBackward0", Keeps::input, ""},
    UnaryRule{"aten.cos", "CosBackward0", Keeps::input, ""},
    UnaryRule{"aten.abs", "AbsBackward0", Keeps::input, ""},
    UnaryRule{"aten.pow", "PowBackward0", Keeps::input, ""},
    UnaryRule{"aten.clamp", "ClampBackward1", Keeps::input, ""},
    UnaryRule{"aten.neg", "NegBackward0", Keeps::nothing, ""},
    UnaryRule{"aten.add", "AddBackward0", Keeps::nothing, ""},
    UnaryRule{"aten.sub", "SubBackward0", Keeps::nothing, ""},
    UnaryRule{"aten.mul", "MulBackward0", Keeps::nothing, ""},
    UnaryRule{"aten.div", "DivBackward0", Keeps::nothing, ""},
};

// "aten.gelu_.default" and "aten.gelu.default" are both "aten.gelu".
const UnaryRule* unary_rule(std::string_view name) {
  std::string_view op = name.substr(0, name.rfind('.'));
  if (op.ends_with('_')) op.remove_suffix(1);
  const auto* found =
      std::find_if(kUnaryRules.begin(), kUnaryRules.end(), [&](const UnaryRule& r) { return r.op == op; });
  return found == kUnaryRules.end() ? nullptr : found;
}

Value scalar_op(Tracer& t, std::string_view name, const Value& x, std::string_view key, double number) {
  return pointwise(t, name, {x}, {{std::string(key), number}});
}

// Gradients that PyTorch composes of several ops.
Value composed_gradient(Tracer& t, std::string_view op, const Value& g, const Value& kept, const Attributes& attributes,
                        bool by_scalar) {
  if (op == "aten.add" || op == "aten.sub") return g;
  if (op == "aten.mul") return pointwise(t, by_scalar ? "aten.mul.Scalar" : "aten.mul.Tensor", {g}, attributes);
  if (op == "aten.div") return pointwise(t, by_scalar ? "aten.div.Scalar" : "aten.div.Tensor", {g}, attributes);
  if (op == "aten.neg") return pointwise(t, "aten.neg.default", {g});
  if (op == "aten.exp") return pointwise(t, "aten.mul.Tensor", {g, kept});
  if (op == "aten.log") return pointwise(t, "aten.div.Tensor", {g, kept});
  if (op == "aten.sqrt") {
    const Value twice = scalar_op(t, "aten.mul.Tensor", kept, "other", 2);
    return pointwise(t, "aten.div.Tensor", {g, twice});
  }
  if (op == "aten.rsqrt") {
    const Value cubed = scalar_op(t, "aten.pow.Tensor_Scalar", kept, "exponent", 3);
    const Value scaled = scalar_op(t, "aten.mul.Scalar", g, "other", -0.5);
    return pointwise(t, "aten.mul.Tensor", {scaled, cubed});
  }
  if (op == "aten.pow") {
    const double exponent = attributes.get_double("exponent", 2);
    const Value lower = scalar_op(t, "aten.pow.Tensor_Scalar", kept, "exponent", exponent - 1);
    const Value scaled = scalar_op(t, "aten.mul.Scalar", lower, "other", exponent);
    return pointwise(t, "aten.mul.Tensor", {g, scaled});
  }
  if (op == "aten.clamp") {
    const Value inside = pointwise(t, "aten.ge.Scalar", {kept}, {}, DType::boolean);
    const Value zero = create(t, "aten.scalar_tensor.default", {}, g->dtype);
    return pointwise(t, "aten.where.self", {inside, g, zero}, {}, g->dtype);
  }
  // sin, cos, erf, abs, reciprocal: a derivative of the kept tensor times the gradient.
  const Value slope = pointwise(t,
                                op == "aten.sin"   ? "aten.cos.default"
                                : op == "aten.cos" ? "aten.sin.default"
                                : op == "aten.abs" ? "aten.sgn.default"
                                                   : "aten.pow.Tensor_Scalar",
                                {kept});
  return pointwise(t, "aten.mul.Tensor", {g, slope});
}

// Sets the node's rule; `kept` is a saved result or the input, as the rule says.
void set_unary_gradient(Tracer& t, Node* node, const UnaryRule& rule, const Value& kept, const Attributes& attributes,
                        bool by_scalar) {
  node->backward = [&t, &rule, kept, attributes, by_scalar](Values gradients) {
    const Value& g = gradients[0];
    const Value unpacked = rule.keeps == Keeps::result ? t.unpack_result(kept) : kept;
    if (rule.backward.empty()) return Values{composed_gradient(t, rule.op, g, unpacked, attributes, by_scalar)};
    if (rule.op != "aten.relu" && rule.op != "aten.leaky_relu") {
      return Values{pointwise(t, rule.backward, {g, unpacked}, attributes)};
    }
    // Their kernels list the kept tensor first, so its layout decides the result's.
    Value result = t.fresh(g->dtype, g->sizes, elementwise_strides(g->sizes, {unpacked, g}));
    t.emit(rule.backward, {g, unpacked}, {result},
           rule.op == "aten.relu" ? Attributes{{"threshold", int64_t{0}}} : attributes);
    return Values{result};
  };
}

// The two-input rules share this shape: gradients of `b` first, then of `a`, as PyTorch evaluates them.
template <class ForA, class ForB>
void set_binary_gradient(Node* node, ForA for_a, ForB for_b) {
  node->backward = [node, for_a = std::move(for_a), for_b = std::move(for_b)](Values gradients) {
    Values result(2);
    if (Tracer::wanted(*node, 1)) result[1] = for_b(gradients[0]);
    if (Tracer::wanted(*node, 0)) result[0] = for_a(gradients[0]);
    return result;
  };
}

}  // namespace

Value pointwise(Tracer& t, std::string_view name, const Values& inputs, const Attributes& attributes,
                std::optional<DType> dtype) {
  const Shape sizes = broadcast(inputs);
  Value y = t.fresh(dtype.value_or(result_type(inputs)), sizes, elementwise_strides(sizes, inputs));
  t.emit(name, inputs, {y}, attributes);
  return y;
}

namespace {

// Emits a recorded two-input op.
Value emit_binary(Tracer& t, std::string_view name, std::string_view node_name, const Value& a, const Value& b,
                  Node*& node) {
  const Shape sizes = broadcast({a, b});
  Value y = t.fresh(result_type({a, b}), sizes, elementwise_strides(sizes, {a, b}));
  node = t.record(node_name, {a, b}, {y});
  t.emit(name, {a, b}, {y});
  return y;
}

const auto kPassThrough = [](const Value& g) { return g; };

}  // namespace

Value add(Tracer& t, const Value& a, const Value& b) {
  Node* node = nullptr;
  Value y = emit_binary(t, "aten.add.Tensor", "AddBackward0", a, b, node);
  if (node != nullptr) set_binary_gradient(node, kPassThrough, kPassThrough);
  return y;
}

Value sub(Tracer& t, const Value& a, const Value& b) {
  Node* node = nullptr;
  Value y = emit_binary(t, "aten.sub.Tensor", "SubBackward0", a, b, node);
  if (node != nullptr) {
    set_binary_gradient(node, kPassThrough, [&t](const Value& g) { return pointwise(t, "aten.neg.default", {g}); });
  }
  return y;
}

Value mul(Tracer& t, const Value& a, const Value& b) {
  Node* node = nullptr;
  Value y = emit_binary(t, "aten.mul.Tensor", "MulBackward0", a, b, node);
  if (node != nullptr) {
    // A factor is kept only for the other's gradient.
    const Value kept_a = Tracer::wanted(*node, 1) ? a : nullptr;
    const Value kept_b = Tracer::wanted(*node, 0) ? b : nullptr;
    set_binary_gradient(
        node,
        [&t, kept_b](const Value& g) {
          return pointwise(t, "aten.mul.Tensor", {g, kept_b});
        },
        [&t, kept_a](const Value& g) {
          return pointwise(t, "aten.mul.Tensor", {g, kept_a});
        });
  }
  return y;
}

Value div(Tracer& t, const Value& a, const Value& b) {
  Node* node = nullptr;
  Value y = emit_binary(t, "aten.div.Tensor", "DivBackward0", a, b, node);
  if (node != nullptr) {
    const Value kept = Tracer::wanted(*node, 1) ? a : nullptr;  // the dividend, for the divisor's gradient alone
    set_binary_gradient(
        node,
        [&t, b](const Value& g) {
          return pointwise(t, "aten.div.Tensor", {g, b});
        },
        [&t, kept, b](const Value& g) {
          const Value ratio = pointwise(t, "aten.div.Tensor", {pointwise(t, "aten.div.Tensor", {kept, b}), b});
          return pointwise(t, "aten.mul.Tensor", {pointwise(t, "aten.neg.default", {g}), ratio});
        });
  }
  return y;
}

void add_in_place(Tracer& t, const Value& a, const Value& b) {
  Node* node = t.record_in_place("AddBackward0", {a, b}, a);
  t.emit("aten.add_.Tensor", {a, b}, {a});
  if (node != nullptr) set_binary_gradient(node, kPassThrough, kPassThrough);
}

void mul_in_place(Tracer& t, const Value& a, const Value& b) {
  Node* node = t.record_in_place("MulBackward0", {a, b}, a);
  t.emit("aten.mul_.Tensor", {a, b}, {a});
  if (node != nullptr) {
    set_binary_gradient(
        node,
        [&t, b](const Value& g) {
          return pointwise(t, "aten.mul.Tensor", {g, b});
        },
        kPassThrough);
  }
}

void div_in_place(Tracer& t, const Value& a, const Value& b) {
  Node* node = t.record_in_place("DivBackward0", {a, b}, a);
  Value kept;  // the dividend, which is about to be lost
  if (node != nullptr && Tracer::wanted(*node, 1)) {
    kept = t.fresh(a->dtype, a->sizes, preserved_strides(*a));
    t.emit("aten.clone.default", {a}, {kept});
  }
  t.emit("aten.div_.Tensor", {a, b}, {a});
  if (node == nullptr) return;
  set_binary_gradient(
      node,
      [&t, b](const Value& g) {
        return pointwise(t, "aten.div.Tensor", {g, b});
      },
      [&t, kept, b](const Value& g) {
        const Value ratio = pointwise(t, "aten.div.Tensor", {pointwise(t, "aten.div.Tensor", {kept, b}), b});
        return pointwise(t, "aten.mul.Tensor", {pointwise(t, "aten.neg.default", {g}), ratio});
      });
}

Value unary(Tracer& t, std::string_view name, const Value& x, const Attributes& attributes) {
  const bool compares = name.starts_with("aten.eq") || name.starts_with("aten.ne.") || name.starts_with("aten.lt") ||
                        name.starts_with("aten.gt") || name.starts_with("aten.le.") || name.starts_with("aten.ge.") ||
                        name.starts_with("aten.logical_");
  if (compares) return pointwise(t, name, {x}, attributes, DType::boolean);
  const UnaryRule* rule = unary_rule(name);
  const bool divides_integers = name.starts_with("aten.div.") && !is_floating(x->dtype);
  Value y = t.fresh(divides_integers ? DType::float32 : x->dtype, x->sizes, preserved_strides(*x));
  Node* node = t.record(rule != nullptr ? rule->node : "UnaryBackward0", {x}, {y});
  t.emit(name, {x}, {y}, attributes);
  if (node == nullptr) return y;
  if (rule == nullptr) {
    node->backward = [&t, x](Values gradients) { return Values{pointwise(t, "aten.mul.Tensor", {gradients[0], x})}; };
  } else {
    const Value kept = rule->keeps == Keeps::result ? t.save_result(y) : rule->keeps == Keeps::input ? x : nullptr;
    set_unary_gradient(t, node, *rule, kept, attributes, name.ends_with(".Scalar"));
  }
  return y;
}

void unary_in_place(Tracer& t, std::string_view name, const Value& x, const Attributes& attributes) {
  const UnaryRule* rule = unary_rule(name);
  const bool recorded = rule != nullptr && t.gradients_on() && needs_gradient(x);
  Node* node = recorded ? t.record_in_place(rule->node, {x}, x) : nullptr;
  Value kept;
  if (node != nullptr && rule->keeps == Keeps::input) {  // the old value is about to be lost: a copy is kept
    kept = t.fresh(x->dtype, x->sizes, preserved_strides(*x));
    t.emit("aten.clone.default", {x}, {kept});
  }
  t.emit(name, {x}, {x}, attributes);
  if (node == nullptr) return;
  if (rule->keeps == Keeps::result) kept = t.save_result(x);
  set_unary_gradient(t, node, *rule, kept, attributes, name.ends_with(".Scalar"));
}

Value masked_fill(Tracer& t, const Value& x, const Value& mask, const Attributes& attributes) {
  const Shape sizes = broadcast({x, mask});
  Value y = t.fresh(x->dtype, sizes, elementwise_strides(sizes, {x, mask}));
  Node* node = t.record("MaskedFillBackward0", {x}, {y});
  t.emit("aten.masked_fill.Scalar", {x, mask}, {y}, attributes);
  if (node != nullptr) {
    node->backward = [&t, mask](Values gradients) {
      return Values{masked_fill(t, gradients[0], mask, {{"value", int64_t{0}}})};
    };
  }
  return y;
}

Value where(Tracer& t, const Value& condition, const Value& a, const Value& b) {
  const Shape sizes = broadcast({condition, a, b});
  Value y = t.fresh(result_type({a, b}), sizes, elementwise_strides(sizes, {condition, a, b}));
  Node* node = t.record("WhereBackward0", {a, b}, {y});
  t.emit("aten.where.self", {condition, a, b}, {y});
  if (node != nullptr) {
    node->backward = [&t, node, condition](Values gradients) {
      Values result(2);
      const Value zero = create(t, "aten.scalar_tensor.default", {}, gradients[0]->dtype);
      for (size_t i = 0; i < 2; ++i) {
        if (!Tracer::wanted(*node, i)) continue;
        const Values inputs = i == 0 ? Values{condition, gradients[0], zero} : Values{condition, zero, gradients[0]};
        result[i] = pointwise(t, "aten.where.self", inputs, {}, gradients[0]->dtype);
      }
      return result;
    };
  }
  return y;
}

Value dropout(Tracer& t, const Value& x, double p) {
  Value y = t.fresh(x->dtype, x->sizes, preserved_strides(*x));
  Value mask = t.fresh(DType::boolean, x->sizes, y->strides);
  Node* node = t.record("NativeDropoutBackward0", {x}, {y, mask});
  t.emit("aten.native_dropout.default", {x}, {y, mask}, {{"p", p}, {"train", true}});
  if (node != nullptr) {
    const double scale = p >= 1 ? 0 : 1 / (1 - p);
    node->backward = [&t, mask, scale](Values gradients) {
      return Values{pointwise(t, "aten.native_dropout_backward.default", {gradients[0], mask}, {{"scale", scale}},
                              gradients[0]->dtype)};
    };
  }
  return y;
}

void dropout_in_place(Tracer& t, const Value& x, double p) {
  Value noise = t.fresh(x->dtype, x->sizes, preserved_strides(*x));
  t.emit("aten.empty_like.default", {x}, {noise});
  t.emit("aten.bernoulli_.float", {noise}, {noise}, {{"p", 1 - p}});
  t.emit("aten.div_.Scalar", {noise}, {noise}, {{"other", 1 - p}});
  mul_in_place(t, x, noise);
}

}  // namespace forerun::derive::aten
