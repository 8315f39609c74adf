// Rules of elementwise ops: activations, arithmetic, comparisons, casts.
//
// A constant of one element becomes the op's scalar argument ("other", "exponent"), as in PyTorch source.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ingest/onnx/rules.h"

namespace forerun::ingest {
namespace {

struct Renamed {
  std::string_view type;
  std::string_view aten;
};

constexpr Renamed kUnary[] = {
    {"Abs", "aten.abs.default"},
    {"Acos", "aten.acos.default"},
    {"Asin", "aten.asin.default"},
    {"Atan", "aten.atan.default"},
    {"Ceil", "aten.ceil.default"},
    {"Cos", "aten.cos.default"},
    {"Cosh", "aten.cosh.default"},
    {"Erf", "aten.erf.default"},
    {"Exp", "aten.exp.default"},
    {"Floor", "aten.floor.default"},
    {"HardSigmoid", "aten.hardsigmoid.default"},
    {"HardSwish", "aten.hardswish.default"},
    {"Log", "aten.log.default"},
    {"Mish", "aten.mish.default"},
    {"Neg", "aten.neg.default"},
    {"Not", "aten.logical_not.default"},
    {"Reciprocal", "aten.reciprocal.default"},
    {"Relu", "aten.relu.default"},
    {"Round", "aten.round.default"},
    {"Selu", "aten.selu.default"},
    {"Sigmoid", "aten.sigmoid.default"},
    {"Sign", "aten.sign.default"},
    {"Sin", "aten.sin.default"},
    {"Sinh", "aten.sinh.default"},
    {"Sqrt", "aten.sqrt.default"},
    {"Tan", "aten.tan.default"},
    {"Tanh", "aten.tanh.default"},
};

constexpr Renamed kBinary[] = {
    {"Add", "aten.add.Tensor"},        {"And", "aten.logical_and.default"}, {"Div", "aten.div.Tensor"},
    {"Equal", "aten.eq.Tensor"},       {"Greater", "aten.gt.Tensor"},       {"GreaterOrEqual", "aten.ge.Tensor"},
    {"Less", "aten.lt.Tensor"},        {"LessOrEqual", "aten.le.Tensor"},   {"Max", "aten.maximum.default"},
    {"Min", "aten.minimum.default"},   {"Mod", "aten.remainder.Tensor"},    {"Mul", "aten.mul.Tensor"},
    {"Or", "aten.logical_or.default"}, {"Pow", "aten.pow.Tensor_Tensor"},   {"Sub", "aten.sub.Tensor"},
    {"Sum", "aten.add.Tensor"},        {"Xor", "aten.logical_xor.default"},
};

// Both lists are sorted by ONNX name.
std::string_view aten_name(std::span<const Renamed> list, std::string_view type) {
  const auto found = std::lower_bound(list.begin(), list.end(), type,
                                      [](const Renamed& entry, std::string_view name) { return entry.type < name; });
  CHECK(found != list.end() && found->type == type, "an elementwise rule without a name");
  return found->aten;
}

bool unary(Node& node) {
  node.out(0, node.b.unary(aten_name(kUnary, node.type()), node.in(0)));
  return true;
}

// x * sigmoid(x) is how exporters write SiLU.
bool sigmoid(Node& node) {
  if (!node.take_following_product()) return unary(node);
  node.out(0, node.b.unary("aten.silu.default", node.in(0)));
  return true;
}

// The same overload with a scalar in place of the second tensor: comparisons have one of their own.
std::string scalar_overload(std::string_view aten) {
  static constexpr std::string_view kWithScalar[] = {"aten.eq.", "aten.gt.", "aten.ge.", "aten.lt.", "aten.le."};
  for (const std::string_view prefix : kWithScalar) {
    if (aten.starts_with(prefix)) return std::string(prefix) + "Scalar";
  }
  return std::string(aten);
}

// Constants of one element that do not raise the rank of the result.
std::optional<double> scalar_beside(const Node& node, size_t scalar, size_t tensor) {
  return node.rank(scalar) <= node.rank(tensor) ? node.scalar(scalar) : std::nullopt;
}

bool is_commutative(std::string_view type) {
  return type == "Add" || type == "Mul" || type == "Equal" || type == "Sum";
}
bool takes_scalar(std::string_view type) {
  return is_commutative(type) || type == "Sub" || type == "Div" || type == "Mod" || type.starts_with("Greater") ||
         type.starts_with("Less");
}

bool with_scalar(Node& node, std::string_view aten) {
  const std::string_view type = node.type();
  if (const std::optional<double> right = scalar_beside(node, 1, 0)) {
    node.out(0, node.b.unary(scalar_overload(aten), node.in(0), {{"other", *right}}));
    return true;
  }
  const std::optional<double> left = scalar_beside(node, 0, 1);
  if (!left) return false;
  if (is_commutative(type)) {
    node.out(0, node.b.unary(scalar_overload(aten), node.in(1), {{"other", *left}}));
  } else if (type == "Sub") {
    node.out(0, node.b.unary("aten.rsub.Scalar", node.in(1), {{"other", *left}}));
  } else if (type == "Div" && is_floating(node.dtype(1))) {  // PyTorch divides a number by a tensor in two steps
    const TensorId inverse = node.b.unary("aten.reciprocal.default", node.in(1));
    node.out(0, *left == 1.0 ? inverse : node.b.mul_scalar(inverse, *left));
  } else {
    return false;
  }
  return true;
}

// The second operand where an opset before 7 says which dimension of the first it begins at ("broadcast", "axis").
TensorId second_operand(Node& node) {
  const Shape a = node.shape(0);
  Shape b = node.shape(1);
  const TensorId tensor = node.in(1);
  if (node.opset >= 7 || node.integer("broadcast", 0) == 0 || !node.has_attribute("axis") || b.size() >= a.size()) {
    return tensor;
  }
  const auto axis = static_cast<size_t>(node.axis(node.integer("axis", 0), static_cast<int64_t>(a.size())));
  if (node.b.failed()) return tensor;
  if (axis + b.size() > a.size()) {
    node.fail(fmt::format("an operand {} cannot begin at dimension {} of {}", text_of(b), axis, text_of(a)));
  }
  if (axis + b.size() >= a.size()) return tensor;
  b.resize(a.size() - axis, 1);
  return node.b.reshape(tensor, b);
}

// Two or more operands: Sum, Min and Max take any number.
bool binary(Node& node) {
  const std::string_view aten = aten_name(kBinary, node.type());
  if (node.input_count() == 2 && takes_scalar(node.type()) && with_scalar(node, aten)) return true;
  const bool any_number = node.type() == "Sum" || node.type() == "Min" || node.type() == "Max";
  if (node.input_count() != 2 && !any_number) node.fail("the op takes two inputs", "export the model again");
  TensorId result = node.in(0);
  for (size_t i = 1; i < node.input_count() && !node.b.failed(); ++i) {
    result = node.b.binary(aten, result, i == 1 ? second_operand(node) : node.in(i));
  }
  node.out(0, result);
  return true;
}

bool power(Node& node) {
  if (const std::optional<double> exponent = scalar_beside(node, 1, 0)) {
    node.out(0, node.b.unary("aten.pow.Tensor_Scalar", node.in(0), {{"exponent", *exponent}}));
    return true;
  }
  if (const std::optional<double> base = scalar_beside(node, 0, 1)) {
    node.out(0, node.b.unary("aten.pow.Scalar", node.in(1), {{"self", *base}}));
    return true;
  }
  return binary(node);
}

bool mean_of(Node& node) {
  TensorId result = node.in(0);
  for (size_t i = 1; i < node.input_count() && !node.b.failed(); ++i) result = node.b.add(result, node.in(i));
  const double count = static_cast<double>(std::max<size_t>(node.input_count(), 1));
  node.out(0, node.b.unary("aten.div.Tensor", result, {{"other", count}}));
  return true;
}

bool leaky_relu(Node& node) {
  node.out(0, node.b.unary("aten.leaky_relu.default", node.in(0), {{"negative_slope", node.real("alpha", 0.01)}}));
  return true;
}

bool elu(Node& node) {
  node.out(0, node.b.unary("aten.elu.default", node.in(0), {{"alpha", node.real("alpha", 1.0)}}));
  return true;
}

bool celu(Node& node) {
  node.out(0, node.b.unary("aten.celu.default", node.in(0), {{"alpha", node.real("alpha", 1.0)}}));
  return true;
}

bool thresholded_relu(Node& node) {
  node.out(
      0, node.b.unary("aten.threshold.default", node.in(0), {{"threshold", node.real("alpha", 1.0)}, {"value", 0.0}}));
  return true;
}

bool softplus(Node& node) {
  node.out(0, node.b.unary("aten.softplus.default", node.in(0), {{"beta", 1.0}, {"threshold", 20.0}}));
  return true;
}

bool softsign(Node& node) {  // PyTorch has no kernel for it: x / (1 + |x|)
  const TensorId x = node.in(0);
  node.out(0, node.b.binary("aten.div.Tensor", x, node.b.add_scalar(node.b.unary("aten.abs.default", x), 1.0)));
  return true;
}

bool prelu(Node& node) {
  const TensorId x = node.in(0);
  node.out(0, node.b.opaque("aten.prelu.default", {x, node.in(1)}, {{node.b.shape(x), node.b.dtype(x)}}).front());
  return true;
}

bool gelu(Node& node) {
  node.out(0, node.b.gelu(node.in(0), node.text("approximate", "none") == "tanh"));
  return true;
}

bool clip(Node& node) {
  if ((node.has(1) && !node.scalar(1)) || (node.has(2) && !node.scalar(2))) return false;
  const double lowest = node.scalar(1).value_or(node.real("min", -std::numeric_limits<double>::infinity()));
  const double highest = node.scalar(2).value_or(node.real("max", std::numeric_limits<double>::infinity()));
  if (lowest == 0 && highest == 6) {  // ReLU6
    node.out(0, node.b.unary("aten.hardtanh.default", node.in(0), {{"min_val", 0.0}, {"max_val", 6.0}}));
    return true;
  }
  Attributes limits;
  if (std::isfinite(lowest)) limits.set("min", lowest);
  if (std::isfinite(highest)) limits.set("max", highest);
  node.out(0, node.b.unary("aten.clamp.default", node.in(0), limits));
  return true;
}

bool where(Node& node) {
  const TensorId condition = node.in(0);
  const TensorId a = node.in(1);
  node.out(0, node.b.where(condition, a, node.in(2)));
  return true;
}

bool cast(Node& node) {
  const std::optional<DType> dtype = node.cast_target();
  if (!dtype) return false;
  node.out(0, node.b.to_dtype(node.in(0), *dtype));
  return true;
}

bool cast_like(Node& node) {
  node.out(0, node.b.to_dtype(node.in(0), node.dtype(1)));
  return true;
}

bool is_nan(Node& node) {
  const std::string_view aten = node.type() == "IsNaN" ? "aten.isnan.default" : "aten.isinf.default";
  const TensorId x = node.in(0);
  node.out(0, node.b.opaque(aten, {x}, {{node.b.shape(x), DType::boolean}}).front());
  return true;
}

bool identity(Node& node) {
  node.forward(0);
  return true;
}

constexpr Rule kElementwiseRules[] = {
    {"Abs", unary},         {"Acos", unary},
    {"Add", binary},        {"And", binary},
    {"Asin", unary},        {"Atan", unary},
    {"Cast", cast},         {"CastLike", cast_like},
    {"Ceil", unary},        {"Celu", celu},
    {"Clip", clip},         {"Cos", unary},
    {"Cosh", unary},        {"Div", binary},
    {"Elu", elu},           {"Equal", binary},
    {"Erf", unary},         {"Exp", unary},
    {"Floor", unary},       {"Gelu", gelu},
    {"Greater", binary},    {"GreaterOrEqual", binary},
    {"HardSigmoid", unary}, {"HardSwish", unary},
    {"Identity", identity}, {"IsInf", is_nan},
    {"IsNaN", is_nan},      {"LeakyRelu", leaky_relu},
    {"Less", binary},       {"LessOrEqual", binary},
    {"Log", unary},         {"Max", binary},
    {"Mean", mean_of},      {"Min", binary},
    {"Mish", unary},        {"Mod", binary},
    {"Mul", binary},        {"Neg", unary},
    {"Not", unary},         {"Or", binary},
    {"PRelu", prelu},       {"Pow", power},
    {"Reciprocal", unary},  {"Relu", unary},
    {"Round", unary},       {"Selu", unary},
    {"Sigmoid", sigmoid},   {"Sign", unary},
    {"Sin", unary},         {"Sinh", unary},
    {"Softplus", softplus}, {"Softsign", softsign},
    {"Sqrt", unary},        {"Sub", binary},
    {"Sum", binary},        {"Tan", unary},
    {"Tanh", unary},        {"ThresholdedRelu", thresholded_relu},
    {"Where", where},       {"Xor", binary},
};

}  // namespace

std::span<const Rule> elementwise_rules() { return kElementwiseRules; }

}  // namespace forerun::ingest
