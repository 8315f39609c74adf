// Folding of arithmetic on constants.
//
// Integer arithmetic wraps as on the devices; what has no value (division by zero, a cast of NaN) is left unfolded and
// becomes an op like any other.
#include <algorithm>
#include <cmath>

#include "ingest/onnx/fold.h"

namespace forerun::ingest {
namespace {

using MaybeInt = std::optional<int64_t>;

int64_t wrapping(uint64_t value) { return static_cast<int64_t>(value); }

struct BinaryFold {
  std::string_view type;
  MaybeInt (*on_ints)(int64_t, int64_t);
  double (*on_reals)(double, double);
  bool gives_bool = false;
};

MaybeInt divide(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  return b == -1 ? wrapping(-static_cast<uint64_t>(a)) : a / b;
}

MaybeInt modulo(int64_t a, int64_t b) {  // the sign of the divisor, as ONNX has it for integers
  if (b == 0) return std::nullopt;
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

MaybeInt power(int64_t a, int64_t b) {
  const double value = std::pow(static_cast<double>(a), static_cast<double>(b));
  if (!(std::abs(value) < 9e15)) return std::nullopt;
  return static_cast<int64_t>(value);
}

constexpr BinaryFold kBinaryFolds[] = {
    {"Add",
     [](int64_t a, int64_t b) -> MaybeInt { return wrapping(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); },
     [](double a, double b) { return a + b; }},
    {"Sub",
     [](int64_t a, int64_t b) -> MaybeInt { return wrapping(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); },
     [](double a, double b) { return a - b; }},
    {"Mul",
     [](int64_t a, int64_t b) -> MaybeInt { return wrapping(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); },
     [](double a, double b) { return a * b; }},
    {"Div", divide, [](double a, double b) { return a / b; }},
    {"Mod", modulo, [](double a, double b) { return std::fmod(a, b); }},
    {"Pow", power, [](double a, double b) { return std::pow(a, b); }},
    {"Min", [](int64_t a, int64_t b) -> MaybeInt { return std::min(a, b); },
     [](double a, double b) { return std::fmin(a, b); }},
    {"Max", [](int64_t a, int64_t b) -> MaybeInt { return std::max(a, b); },
     [](double a, double b) { return std::fmax(a, b); }},
    {"And", [](int64_t a, int64_t b) -> MaybeInt { return a != 0 && b != 0; }, nullptr, true},
    {"Or", [](int64_t a, int64_t b) -> MaybeInt { return a != 0 || b != 0; }, nullptr, true},
    {"Equal", [](int64_t a, int64_t b) -> MaybeInt { return a == b; },
     [](double a, double b) { return double(a == b); }, true},
    {"Greater", [](int64_t a, int64_t b) -> MaybeInt { return a > b; },
     [](double a, double b) { return double(a > b); }, true},
    {"GreaterOrEqual", [](int64_t a, int64_t b) -> MaybeInt { return a >= b; },
     [](double a, double b) { return double(a >= b); }, true},
    {"Less", [](int64_t a, int64_t b) -> MaybeInt { return a < b; }, [](double a, double b) { return double(a < b); },
     true},
    {"LessOrEqual", [](int64_t a, int64_t b) -> MaybeInt { return a <= b; },
     [](double a, double b) { return double(a <= b); }, true},
};

bool fold_binary(Node& node, const BinaryFold& op) {
  if (node.input_count() != 2) return false;
  const Constant& a = *node.constant(0);
  const Constant& b = *node.constant(1);
  const std::optional<Shape> shape = broadcast_small(a.shape, b.shape);
  const bool floating = is_floating(a.dtype);
  if (!shape || floating != is_floating(b.dtype) || (floating && op.on_reals == nullptr)) return false;
  Constant out = empty_like(a, *shape);
  if (op.gives_bool) out.dtype = DType::boolean;
  const auto count = static_cast<size_t>(*checked_elements(*shape));
  for (size_t i = 0; i < count; ++i) {
    const size_t left = source_of(i, *shape, a.shape);
    const size_t right = source_of(i, *shape, b.shape);
    if (floating) {
      const double value = op.on_reals(a.reals[left], b.reals[right]);
      if (op.gives_bool) {
        out.ints.push_back(value != 0 ? 1 : 0);
      } else {
        out.reals.push_back(value);
      }
    } else {
      const MaybeInt value = op.on_ints(a.ints[left], b.ints[right]);
      if (!value) return false;
      out.ints.push_back(*value);
    }
  }
  node.out(0, std::move(out));
  return true;
}

bool fold_cast(Node& node) {
  const Constant& in = *node.constant(0);
  const std::optional<DType> dtype = node.cast_target();
  if (!dtype) return false;
  Constant out{.dtype = *dtype, .shape = in.shape, .known = true, .ints = {}, .reals = {}};
  for (size_t i = 0; i < in.size(); ++i) {
    if (is_floating(*dtype)) {
      out.reals.push_back(in.number(i));
    } else if (*dtype == DType::boolean) {
      out.ints.push_back(in.number(i) != 0 ? 1 : 0);
    } else if (!is_floating(in.dtype)) {
      out.ints.push_back(in.ints[i]);
    } else if (std::abs(in.reals[i]) < 9e18) {
      out.ints.push_back(static_cast<int64_t>(in.reals[i]));
    } else {
      return false;
    }
  }
  node.out(0, std::move(out));
  return true;
}

bool fold_unary(Node& node) {
  Constant out = *node.constant(0);
  const std::string_view type = node.type();
  const auto each = [&](auto on_int, auto on_real) {
    for (int64_t& value : out.ints) value = on_int(value);
    for (double& value : out.reals) value = on_real(value);
  };
  const auto same = [](int64_t v) { return v; };
  if (type == "Neg") {
    each([](int64_t v) { return wrapping(-static_cast<uint64_t>(v)); }, [](double v) { return -v; });
  } else if (type == "Abs") {
    each([](int64_t v) { return v < 0 ? wrapping(-static_cast<uint64_t>(v)) : v; },
         [](double v) { return std::abs(v); });
  } else if (type == "Not") {
    each([](int64_t v) { return int64_t{v == 0}; }, [](double v) { return v; });
  } else if (type == "Floor") {
    each(same, [](double v) { return std::floor(v); });
  } else if (type == "Ceil") {
    each(same, [](double v) { return std::ceil(v); });
  } else if (!is_floating(out.dtype)) {
    return false;
  } else if (type == "Sqrt") {
    each(same, [](double v) { return std::sqrt(v); });
  } else {  // Reciprocal
    each(same, [](double v) { return 1 / v; });
  }
  node.out(0, std::move(out));
  return true;
}

bool fold_where(Node& node) {
  if (node.input_count() != 3) return false;
  const Constant& condition = *node.constant(0);
  const Constant& a = *node.constant(1);
  const Constant& b = *node.constant(2);
  if (is_floating(condition.dtype) || is_floating(a.dtype) != is_floating(b.dtype)) return false;
  const std::optional<Shape> values = broadcast_small(a.shape, b.shape);
  const std::optional<Shape> shape = values ? broadcast_small(condition.shape, *values) : std::nullopt;
  if (!shape) return false;
  Constant out = empty_like(a, *shape);
  const auto count = static_cast<size_t>(*checked_elements(*shape));
  for (size_t i = 0; i < count; ++i) {
    const Constant& chosen = condition.ints[source_of(i, *shape, condition.shape)] != 0 ? a : b;
    copy_element(chosen, source_of(i, *shape, chosen.shape), out);
  }
  node.out(0, std::move(out));
  return true;
}

bool fold_reduce(Node& node) {
  const Constant& in = *node.constant(0);
  const bool whole = node.integer("noop_with_empty_axes", 0) == 0 || node.list("axes", 1);
  if (is_floating(in.dtype) || in.shape.size() != 1 || in.ints.empty() || !whole) return false;
  uint64_t value = static_cast<uint64_t>(in.ints[0]);
  for (size_t i = 1; i < in.ints.size(); ++i) {
    const auto next = static_cast<uint64_t>(in.ints[i]);
    if (node.type() == "ReduceProd") {
      value *= next;
    } else if (node.type() == "ReduceSum") {
      value += next;
    } else {
      const bool larger = in.ints[i] > wrapping(value);
      if (larger == (node.type() == "ReduceMax")) value = next;
    }
  }
  node.out(0, Constant::of_ints({wrapping(value)}, node.integer("keepdims", 1) != 0 ? Shape{1} : Shape{}, in.dtype));
  return true;
}

struct ArithmeticFold {
  std::string_view type;
  bool (*run)(Node& node);
};

constexpr ArithmeticFold kArithmeticFolds[] = {
    {"Abs", fold_unary},        {"Cast", fold_cast},         {"Ceil", fold_unary},       {"Floor", fold_unary},
    {"Neg", fold_unary},        {"Not", fold_unary},         {"Reciprocal", fold_unary}, {"ReduceMax", fold_reduce},
    {"ReduceMin", fold_reduce}, {"ReduceProd", fold_reduce}, {"ReduceSum", fold_reduce}, {"Sqrt", fold_unary},
    {"Where", fold_where},
};

}  // namespace

bool fold_arithmetic(Node& node) {
  for (const BinaryFold& op : kBinaryFolds) {
    if (op.type == node.type()) return fold_binary(node, op);
  }
  for (const ArithmeticFold& candidate : kArithmeticFolds) {
    if (candidate.type == node.type()) return candidate.run(node);
  }
  return false;
}

std::optional<Shape> broadcast_small(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {  // from the last dimension
    const int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    out[out.size() - 1 - i] = left == 1 ? right : left;
  }
  const std::optional<int64_t> elements = checked_elements(out);
  if (!elements || *elements > kMaxKnownElements) return std::nullopt;
  return out;
}

size_t source_of(size_t flat, const Shape& out, const Shape& in) {
  size_t source = 0;
  size_t stride = 1;
  for (size_t i = 0; i < in.size(); ++i) {  // from the last dimension
    const auto extent = static_cast<size_t>(out[out.size() - 1 - i]);
    const auto own = static_cast<size_t>(in[in.size() - 1 - i]);
    source += own == 1 ? 0 : (flat % extent) * stride;
    flat /= extent;
    stride *= own;
  }
  return source;
}

void copy_element(const Constant& from, size_t i, Constant& to) {
  if (is_floating(from.dtype)) {
    to.reals.push_back(from.reals[i]);
  } else {
    to.ints.push_back(from.ints[i]);
  }
}

Constant empty_like(const Constant& like, Shape shape) {
  return {.dtype = like.dtype, .shape = std::move(shape), .known = true, .ints = {}, .reals = {}};
}

}  // namespace forerun::ingest
