// Rules of reductions, indexing, creation and resizing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ingest/onnx/rules.h"

namespace forerun::ingest {
namespace {

struct Reduction {
  std::string_view type;
  std::string_view aten;
};

constexpr Reduction kReductions[] = {
    {"ReduceL1", "aten.linalg_vector_norm.default"},
    {"ReduceL2", "aten.linalg_vector_norm.default"},
    {"ReduceLogSumExp", "aten.logsumexp.default"},
    {"ReduceMax", "aten.amax.default"},
    {"ReduceMin", "aten.amin.default"},
    {"ReduceProd", "aten.prod.dim_int"},
};

bool reduce(Node& node) {
  std::optional<Shape> axes = node.list("axes", 1);
  if (!axes && node.has(1)) return false;
  const int64_t rank = node.rank(0);
  if (!axes || axes->empty()) {
    if (node.integer("noop_with_empty_axes", 0) != 0) {
      node.forward(0);
      return true;
    }
    axes = Shape(static_cast<size_t>(rank));
    std::iota(axes->begin(), axes->end(), 0);
  }
  for (int64_t& axis : *axes) axis = node.axis(axis, rank);
  const bool keep = node.integer("keepdims", 1) != 0;
  TensorId x = node.in(0);
  if (node.b.failed()) return true;
  const std::string_view type = node.type();
  if (type == "ReduceMean") {
    node.out(0, node.b.mean(x, *axes, keep));
  } else if (type == "ReduceSum") {
    node.out(0, node.b.sum(x, *axes, keep));
  } else if (type == "ReduceSumSquare") {
    node.out(0, node.b.sum(node.b.unary("aten.pow.Tensor_Scalar", x, {{"exponent", 2.0}}), *axes, keep));
  } else if (type == "ReduceLogSum") {
    node.out(0, node.b.unary("aten.log.default", node.b.sum(x, *axes, keep)));
  } else {
    const auto* found = std::find_if(std::begin(kReductions), std::end(kReductions),
                                     [&](const Reduction& entry) { return entry.type == type; });
    CHECK(found != std::end(kReductions), "a reduction without a name");
    node.out(0, node.b.reduce(found->aten, x, *axes, keep));
  }
  return true;
}

bool arg_extreme(Node& node) {
  Shape shape = node.shape(0);
  const int64_t axis = node.axis(node.integer("axis", 0), static_cast<int64_t>(shape.size()));
  if (node.b.failed()) return true;
  const bool keep = node.integer("keepdims", 1) != 0;
  if (keep) {
    shape[static_cast<size_t>(axis)] = 1;
  } else {
    shape.erase(shape.begin() + axis);
  }
  const std::string_view aten = node.type() == "ArgMax" ? "aten.argmax.default" : "aten.argmin.default";
  node.out(
      0, node.b.opaque(aten, {node.in(0)}, {{shape, DType::int64}}, {{"dim", Shape{axis}}, {"keepdim", keep}}).front());
  return true;
}

bool top_k(Node& node) {
  Shape shape = node.shape(0);
  const std::optional<double> count = node.has(1) ? node.scalar(1) : static_cast<double>(node.integer("k", 0));
  const int64_t axis = node.axis(node.integer("axis", -1), static_cast<int64_t>(shape.size()));
  if (node.b.failed()) return true;
  if (!count || !(*count >= 0) || *count > static_cast<double>(shape[static_cast<size_t>(axis)])) return false;
  const auto k = static_cast<int64_t>(*count);
  shape[static_cast<size_t>(axis)] = k;
  const std::vector<TensorId> outputs = node.b.opaque(
      "aten.topk.default", {node.in(0)}, {{shape, node.dtype(0)}, {shape, DType::int64}}, {{"k", k}, {"dim", axis}});
  node.out(0, outputs[0]);
  node.out(1, outputs[1]);
  return true;
}

bool cumulative_sum(Node& node) {
  const std::optional<double> stated = node.scalar(1);
  if (!stated || !(std::abs(*stated) <= static_cast<double>(kMaxRank))) return false;
  const int64_t axis = node.axis(static_cast<int64_t>(*stated), node.rank(0));
  node.out(0, node.b.unary("aten.cumsum.default", node.in(0), {{"dim", axis}}));
  return true;
}

bool triangle(Node& node) {
  const double diagonal = std::clamp(node.scalar(1).value_or(0.0), -1e12, 1e12);
  const std::string_view aten = node.integer("upper", 1) != 0 ? "aten.triu.default" : "aten.tril.default";
  node.out(0, node.b.unary(aten, node.in(0), {{"diagonal", static_cast<int64_t>(diagonal)}}));
  return true;
}

bool gather(Node& node) {
  const Shape data = node.shape(0);
  const int64_t axis = node.axis(node.integer("axis", 0), static_cast<int64_t>(data.size()));
  if (node.b.failed()) return true;
  const TensorId x = node.in(0);
  const Shape indices = node.shape(1);
  const std::optional<double> single = indices.empty() ? node.scalar(1) : std::nullopt;
  if (single) {
    node.out(0, node.b.select(x, axis, static_cast<int64_t>(std::clamp(*single, -1e15, 1e15))));
  } else if (node.is_parameter(0) && data.size() == 2 && axis == 0) {
    node.out(0, node.b.embedding(x, node.in(1)));
  } else if (indices.size() == 1) {
    node.out(0, node.b.index_select(x, axis, node.in(1)));
  } else {
    Shape shape(data.begin(), data.begin() + axis);
    shape.insert(shape.end(), indices.begin(), indices.end());
    shape.insert(shape.end(), data.begin() + axis + 1, data.end());
    node.out(0, node.b.index(x, {node.in(1)}, shape));
  }
  return true;
}

bool gather_elements(Node& node) {
  const int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  const TensorId x = node.in(0);
  node.out(0, node.b.gather(x, axis, node.in(1)));
  return true;
}

bool constant_of_shape(Node& node) {
  const std::optional<Shape> shape = node.integers(0);
  if (!shape) return false;
  Constant value{.dtype = DType::float32, .shape = {1}, .known = true, .ints = {}, .reals = {0.0}};
  if (const onnx::AttributeProto* stated = node.attribute("value")) {
    Result<Constant> read = read_tensor(stated->t());
    if (!read) {
      node.fail(read.error().what, read.error().remedy);
      return true;
    }
    value = std::move(*read);
  }
  const std::optional<int64_t> elements = checked_elements(*shape);
  const bool one = value.known && value.size() == 1;
  Constant filled{.dtype = value.dtype, .shape = *shape, .known = false, .ints = {}, .reals = {}};
  if (one && elements && *elements <= kMaxKnownElements) {
    filled.known = true;
    if (is_floating(value.dtype)) {
      filled.reals.assign(static_cast<size_t>(*elements), value.reals[0]);
    } else {
      filled.ints.assign(static_cast<size_t>(*elements), value.ints[0]);
    }
  }
  if (elements && node.out_weight(0, filled)) return true;
  if (filled.known) {
    node.out(0, std::move(filled));
    return true;
  }
  Attributes fill;
  if (one) fill.set("fill_value", value.number(0));
  node.out(0, node.b.create("aten.full.default", *shape, value.dtype, fill));
  return true;
}

bool range(Node& node) {
  const std::array<std::optional<double>, 3> bounds = {node.scalar(0), node.scalar(1), node.scalar(2)};
  if (!bounds[0] || !bounds[1] || !bounds[2]) return false;
  const double count = std::ceil((*bounds[1] - *bounds[0]) / *bounds[2]);
  if (!(count <= static_cast<double>(kMaxElements))) {
    node.fail(fmt::format("a range from {} to {} by {} is not possible", *bounds[0], *bounds[1], *bounds[2]));
    return true;
  }
  const auto length = static_cast<int64_t>(std::max(count, 0.0));
  node.out(0, node.b.create("aten.arange.start_step", {length}, node.dtype(0)));
  return true;
}

// The scales of an Upsample that has them as attributes: one list before opset 9, height and width in opset 1.
std::vector<double> early_scales(const Node& node, size_t rank) {
  if (const onnx::AttributeProto* list = node.attribute("scales"))
    return {list->floats().begin(), list->floats().end()};
  if (!node.has_attribute("height_scale") || rank != 4) return {};
  return {1.0, 1.0, node.real("height_scale", 1.0), node.real("width_scale", 1.0)};
}

// The target of Resize (X, roi, scales, sizes) or Upsample (X, scales); nothing where it is not known.
std::optional<Shape> resized_shape(Node& node) {
  Shape shape = node.shape(0);
  const bool upsample = node.type() == "Upsample" || node.opset < 11;
  const Constant* scales = node.constant(upsample ? 1 : 2);
  const std::optional<Shape> sizes = upsample ? std::nullopt : node.integers(3);
  Shape axes = node.integers("axes");
  if (!node.has_attribute("axes")) {
    axes.resize(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  const std::vector<double> early = early_scales(node, shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = node.axis(axes[i], static_cast<int64_t>(shape.size()));
    if (node.b.failed()) return std::nullopt;
    int64_t& extent = shape[static_cast<size_t>(axis)];
    double target = 0;
    if (sizes && sizes->size() == axes.size()) {
      target = static_cast<double>((*sizes)[i]);
    } else if (scales != nullptr && scales->size() == axes.size()) {
      target = std::floor(static_cast<double>(extent) * scales->number(i));
    } else if (early.size() == axes.size() && !early.empty()) {
      target = std::floor(static_cast<double>(extent) * early[i]);
    } else {
      return std::nullopt;
    }
    if (!(target >= 1 && target <= static_cast<double>(kMaxElements))) {
      node.fail(fmt::format("axis {} of {} cannot be resized to {}", axes[i], text_of(node.shape(0)), target));
      return std::nullopt;
    }
    extent = static_cast<int64_t>(target);
  }
  return shape;
}

bool resize(Node& node) {
  const std::optional<Shape> shape = resized_shape(node);
  if (!shape) return node.b.failed();
  const Shape in = node.shape(0);
  const TensorId x = node.in(0);
  const std::string mode = node.text("mode", "nearest");
  const bool corners = node.text("coordinate_transformation_mode", "half_pixel") == "align_corners";
  const bool image = in.size() == 4 && (*shape)[0] == in[0] && (*shape)[1] == in[1];
  if (image && mode == "nearest") {
    node.out(0, node.b.upsample_nearest2d(x, (*shape)[2], (*shape)[3]));
  } else if (image && (mode == "linear" || mode == "bilinear")) {
    node.out(0, node.b.upsample_bilinear2d(x, (*shape)[2], (*shape)[3], corners));
  } else {
    node.carry({{*shape, node.b.dtype(x)}});
  }
  return true;
}

// "bhid,bhjd->bhij": carried as opaque; the equation gives the shape. Ellipses are left to value_info.
bool einsum(Node& node) {
  std::string equation = node.text("equation", "");
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos) return false;
  std::array<int64_t, 256> extents{};
  std::array<bool, 256> seen{};
  size_t input = 0;
  size_t dim = 0;
  Shape shape = node.shape(0);
  for (size_t i = 0; i < arrow; ++i) {
    if (equation[i] == ',') {
      shape = node.shape(++input);
      dim = 0;
    } else if (dim < shape.size()) {
      const auto label = static_cast<unsigned char>(equation[i]);
      extents[label] = std::max(extents[label], shape[dim++]);
      seen[label] = true;
    } else {
      return false;
    }
  }
  Shape result;
  for (size_t i = arrow + 2; i < equation.size(); ++i) {
    const auto label = static_cast<unsigned char>(equation[i]);
    if (!seen[label] || result.size() == kMaxRank) return false;
    result.push_back(extents[label]);
  }
  node.carry({{result, node.dtype(0)}});
  return true;
}

constexpr Rule kIndexRules[] = {
    {"ArgMax", arg_extreme},
    {"ArgMin", arg_extreme},
    {"ConstantOfShape", constant_of_shape},
    {"CumSum", cumulative_sum},
    {"Einsum", einsum},
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"Range", range},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"Resize", resize},
    {"TopK", top_k, 2},
    {"Trilu", triangle},
    {"Upsample", resize},
};

}  // namespace

std::span<const Rule> index_rules() { return kIndexRules; }

}  // namespace forerun::ingest
