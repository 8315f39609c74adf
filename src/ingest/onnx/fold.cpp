// Constant folding of what exporters write around shapes: Shape -> Gather -> Mul -> Concat -> Reshape, and scalars.
//
// Only small tensors (kMaxKnownElements) are folded, which also bounds the work. Here: making and regrouping constants;
// arithmetic is in fold_arithmetic.cpp.
#include "ingest/onnx/fold.h"

#include <algorithm>
#include <optional>

#include "ingest/onnx/rules.h"

namespace forerun::ingest {
namespace {

bool fold_expand(Node& node) {
  const Constant& in = *node.constant(0);
  const std::optional<Shape> target = node.integers(1);
  if (!target || !checked_elements(*target)) return false;
  const std::optional<Shape> shape = broadcast_small(in.shape, *target);
  if (!shape) return false;
  Constant out = empty_like(in, *shape);
  const auto count = static_cast<size_t>(*checked_elements(*shape));
  for (size_t i = 0; i < count; ++i) copy_element(in, source_of(i, *shape, in.shape), out);
  node.out(0, std::move(out));
  return true;
}

bool fold_gather(Node& node) {
  const Constant& data = *node.constant(0);
  const std::optional<Shape> indices = node.integers(1);
  if (!indices || data.shape.empty() || node.integer("axis", 0) != 0) return false;
  Shape shape = node.shape(1);
  shape.insert(shape.end(), data.shape.begin() + 1, data.shape.end());
  const std::optional<int64_t> elements = checked_elements(shape);
  if (!elements || *elements > kMaxKnownElements || data.shape[0] == 0) return false;
  Constant out = empty_like(data, shape);
  const size_t row = data.size() / static_cast<size_t>(data.shape[0]);
  for (const int64_t index : *indices) {
    if (index < -data.shape[0] || index >= data.shape[0]) {
      node.fail("index " + std::to_string(index) + " lies outside " + text_of(data.shape), "export the model again");
      return true;
    }
    const auto first = static_cast<size_t>(index < 0 ? index + data.shape[0] : index) * row;
    for (size_t i = first; i < first + row; ++i) copy_element(data, i, out);
  }
  node.out(0, std::move(out));
  return true;
}

bool fold_concat(Node& node) {
  Constant out = empty_like(*node.constant(0), {0});
  for (size_t i = 0; i < node.input_count(); ++i) {
    const Constant& part = *node.constant(i);
    if (part.shape.size() != 1 || is_floating(part.dtype) != is_floating(out.dtype)) return false;
    out.shape[0] += part.shape[0];
    if (out.shape[0] > kMaxKnownElements) return false;
    for (size_t k = 0; k < part.size(); ++k) copy_element(part, k, out);
  }
  node.out(0, std::move(out));
  return true;
}

// The elements of `in` whose place along each axis is start + i * step, for i below the extent of `shape`.
Constant picked(const Constant& in, const Shape& shape, const Shape& starts, const Shape& steps) {
  Constant out = empty_like(in, shape);
  const auto count = static_cast<size_t>(checked_elements(shape).value_or(0));
  for (size_t flat = 0; flat < count; ++flat) {
    auto rest = static_cast<int64_t>(flat);
    int64_t source = 0;
    int64_t stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      source += (starts[axis] + rest % shape[axis] * steps[axis]) * stride;
      rest /= shape[axis];
      stride *= in.shape[axis];
    }
    copy_element(in, static_cast<size_t>(source), out);
  }
  return out;
}

bool fold_slice(Node& node) {
  const Constant& in = *node.constant(0);
  const std::optional<std::vector<Cut>> cuts = cuts_of(node);
  if (!cuts) return node.b.failed();
  Shape shape = in.shape;
  Shape starts(shape.size(), 0);
  Shape steps(shape.size(), 1);
  for (const Cut& cut : *cuts) {
    const auto axis = static_cast<size_t>(cut.axis);
    shape[axis] = cut.extent;
    starts[axis] = cut.start;
    steps[axis] = cut.step;
  }
  node.out(0, picked(in, shape, starts, steps));
  return true;
}

bool fold_transpose(Node& node) {
  const Constant& in = *node.constant(0);
  const size_t rank = in.shape.size();
  Shape order = node.integers("perm");
  if (!node.has_attribute("perm")) {
    for (size_t i = rank; i-- > 0;) order.push_back(static_cast<int64_t>(i));
  }
  Shape sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  if (order.size() != rank) return false;
  Shape strides(rank, 1);  // of the input
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * in.shape[i];
  Shape shape;
  for (const int64_t axis : order) shape.push_back(in.shape[static_cast<size_t>(axis)]);
  Constant out = empty_like(in, shape);
  for (size_t flat = 0; flat < in.size(); ++flat) {
    auto rest = static_cast<int64_t>(flat);
    int64_t source = 0;
    for (size_t i = rank; i-- > 0;) {
      source += rest % shape[i] * strides[static_cast<size_t>(order[i])];
      rest /= shape[i];
    }
    copy_element(in, static_cast<size_t>(source), out);
  }
  node.out(0, std::move(out));
  return true;
}

bool fold_split(Node& node) {
  const Constant& in = *node.constant(0);
  if (in.shape.size() != 1 || node.output_count() == 0) return false;
  const auto parts = static_cast<int64_t>(node.output_count());
  Shape sizes(node.output_count(), (in.shape[0] + parts - 1) / parts);
  sizes.back() = in.shape[0] - sizes[0] * (parts - 1);
  if (const std::optional<Shape> stated = node.list("split", 1)) sizes = *stated;
  if (sizes.size() != node.output_count()) return false;
  size_t next = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > static_cast<int64_t>(in.size() - next)) return false;
    Constant out = empty_like(in, {sizes[i]});
    for (int64_t k = 0; k < sizes[i]; ++k) copy_element(in, next++, out);
    node.out(i, std::move(out));
  }
  return true;
}

// Squeeze, Unsqueeze, Reshape, Flatten: the same contents in another shape.
bool fold_reshape(Node& node) {
  const Constant& in = *node.constant(0);
  const std::string_view type = node.type();
  Shape shape;
  if (type == "Reshape") {
    const std::optional<Shape> target = node.integers(1);
    if (!target) return false;
    shape = *target;
    int64_t known = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 0 && i < in.shape.size()) shape[i] = in.shape[i];
      if (shape[i] < -1 || shape[i] > kMaxKnownElements || shape.size() > kMaxRank) return false;
      if (shape[i] > 0) known = std::min(known * shape[i], kMaxKnownElements + 1);
    }
    const auto open = std::find(shape.begin(), shape.end(), -1);
    if (open != shape.end()) *open = static_cast<int64_t>(in.size()) / known;
  } else {
    std::optional<Shape> axes = node.list("axes", 1);
    const bool adds = type == "Unsqueeze";
    if (!axes && (adds || node.has(1))) return false;
    const auto rank = static_cast<int64_t>(in.shape.size() + (adds ? axes->size() : 0));
    if (rank == 0 || rank > static_cast<int64_t>(kMaxRank)) return false;
    std::vector<bool> marked(static_cast<size_t>(rank), false);
    for (const int64_t axis : axes.value_or(Shape{})) marked[static_cast<size_t>(node.axis(axis, rank))] = true;
    size_t next = 0;
    for (size_t i = 0; i < marked.size(); ++i) {
      if (adds) {
        if (!marked[i] && next == in.shape.size()) return false;  // an axis named twice
        shape.push_back(marked[i] ? 1 : in.shape[next++]);
      } else if (axes ? !marked[i] : in.shape[i] != 1) {
        shape.push_back(in.shape[i]);
      }
    }
  }
  if (checked_elements(shape) != static_cast<int64_t>(in.size())) return false;
  Constant out = in;
  out.shape = std::move(shape);
  node.out(0, std::move(out));
  return true;
}

bool fold_range(Node& node) {
  if (node.input_count() != 3) return false;
  for (size_t i = 0; i < 3; ++i) {
    if (node.constant(i)->size() != 1 || is_floating(node.constant(i)->dtype)) return false;
  }
  const int64_t start = node.constant(0)->ints[0];
  const int64_t limit = node.constant(1)->ints[0];
  const int64_t delta = node.constant(2)->ints[0];
  constexpr int64_t kFar = int64_t{1} << 40;
  if (std::max({std::abs(start / 2), std::abs(limit / 2), std::abs(delta / 2)}) > kFar || delta == 0) return false;
  const int64_t count = std::max<int64_t>(0, (limit - start + delta + (delta > 0 ? -1 : 1)) / delta);
  if (count > kMaxKnownElements) return false;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(start + i * delta);
  node.out(0, Constant::of_ints(std::move(values), {count}, node.constant(0)->dtype));
  return true;
}

struct Fold {
  std::string_view type;
  bool (*run)(Node& node);
};

constexpr Fold kFolds[] = {
    {"Concat", fold_concat},       {"Expand", fold_expand},     {"Gather", fold_gather}, {"Range", fold_range},
    {"Reshape", fold_reshape},     {"Slice", fold_slice},       {"Split", fold_split},   {"Squeeze", fold_reshape},
    {"Transpose", fold_transpose}, {"Unsqueeze", fold_reshape},
};

bool fold_constant(Node& node) {
  Constant out;
  out.known = true;
  if (const onnx::AttributeProto* value = node.attribute("value")) {
    Result<Constant> read = read_tensor(value->t());
    if (!read) {
      node.fail(read.error().what, read.error().remedy);
      return true;
    }
    out = std::move(*read);
  } else if (const onnx::AttributeProto* number = node.attribute("value_float")) {
    out.reals = {number->f()};
  } else if (const onnx::AttributeProto* numbers = node.attribute("value_floats")) {
    out.reals.assign(numbers->floats().begin(), numbers->floats().end());
    out.shape = {static_cast<int64_t>(out.reals.size())};
  } else if (node.has_attribute("value_int")) {
    out = Constant::of_ints({node.integer("value_int", 0)}, {});
  } else if (node.has_attribute("value_ints")) {
    out = Constant::list(node.integers("value_ints"));
  } else if (const onnx::AttributeProto* sparse = node.attribute("sparse_value")) {
    Result<Constant> read = read_sparse(sparse->sparse_tensor());
    if (!read) {
      node.fail(read.error().what, read.error().remedy);
      return true;
    }
    out = std::move(*read);
  } else {
    return false;  // strings
  }
  if (static_cast<int64_t>(out.size()) > kMaxKnownElements) {
    out.known = false;
    out.ints = {};
    out.reals = {};
  }
  if (!node.out_weight(0, out)) node.out(0, std::move(out));
  return true;
}

bool fold_shape(Node& node) {
  if (!node.has(0)) return false;
  const Shape shape = node.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto bounded = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = bounded(node.integer("start", 0));
  const int64_t end = std::max(start, bounded(node.integer("end", rank)));
  node.out(0, Constant::list({shape.begin() + start, shape.begin() + end}));
  return true;
}

}  // namespace

bool fold(Node& node) {
  const std::string_view type = node.type();
  if (type == "Constant") return fold_constant(node);
  if (type == "Shape") return fold_shape(node);
  if (type == "Size") {
    const std::optional<int64_t> elements = checked_elements(node.shape(0));
    if (!node.has(0) || !elements) return false;
    node.out(0, Constant::of_ints({*elements}, {}));
    return true;
  }
  if (node.input_count() == 0) return false;
  for (size_t i = 0; i < node.input_count(); ++i) {
    const bool may_be_absent = type == "Slice" && i > 0;
    if (node.has(i) ? node.constant(i) == nullptr : !may_be_absent) return false;
  }
  if (fold_arithmetic(node)) return true;
  for (const Fold& candidate : kFolds) {
    if (candidate.type == type) return candidate.run(node);
  }
  return false;
}

}  // namespace forerun::ingest
