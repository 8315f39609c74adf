// Rules of ops that move or regroup elements: views, joins, splits, repetition, padding.
//
// Targets (sizes, axes, starts) must be known after folding; a node whose target depends on data is opaque.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ingest/onnx/fold.h"
#include "ingest/onnx/rules.h"

namespace forerun::ingest {
namespace {

bool flatten(Node& node) {
  const Shape in = node.shape(0);
  const auto rank = static_cast<int64_t>(in.size());
  const int64_t stated = node.integer("axis", 1);
  const int64_t axis = stated == rank ? rank : node.axis(stated, std::max<int64_t>(rank, 1));
  if (node.b.failed()) return true;
  if (axis == 1 && rank >= 2) {
    node.out(0, node.b.flatten(node.in(0), 1));
    return true;
  }
  const std::optional<int64_t> rows = checked_elements({in.begin(), in.begin() + axis});
  const std::optional<int64_t> columns = checked_elements({in.begin() + axis, in.end()});
  node.out(0, node.b.reshape(node.in(0), {rows.value_or(0), columns.value_or(0)}));
  return true;
}

bool reshape(Node& node) {
  std::optional<Shape> target = node.list("shape", 1);
  if (!target) return false;
  const Shape in = node.shape(0);
  if (node.integer("allowzero", 0) == 0) {
    for (size_t i = 0; i < target->size(); ++i) {
      if ((*target)[i] == 0 && i < in.size()) (*target)[i] = in[i];
    }
  }
  if (target->size() > kMaxRank) node.fail(fmt::format("a shape of rank {} is not possible", target->size()));
  node.out(0, node.b.reshape(node.in(0), *target));
  return true;
}

bool transpose(Node& node) {
  const int64_t rank = node.rank(0);
  Shape order = node.integers("perm");
  if (!node.has_attribute("perm")) {
    order.resize(static_cast<size_t>(rank));
    std::iota(order.rbegin(), order.rend(), 0);
  }
  Shape moved;
  for (int64_t i = 0; i < static_cast<int64_t>(order.size()); ++i) {
    if (order[static_cast<size_t>(i)] != i) moved.push_back(i);
  }
  const bool swap = moved.size() == 2 && static_cast<int64_t>(order.size()) == rank &&
                    order[static_cast<size_t>(moved[0])] == moved[1] &&
                    order[static_cast<size_t>(moved[1])] == moved[0];
  if (swap && node.keep_transposed()) return true;
  node.out(0, swap ? node.b.transpose(node.in(0), moved[0], moved[1]) : node.b.permute(node.in(0), order));
  return true;
}

// Wrapped, sorted and without repetition; empty after a failure.
Shape sorted_axes(Node& node, const Shape& axes, int64_t rank) {
  Shape sorted;
  for (const int64_t axis : axes) sorted.push_back(node.axis(axis, rank));
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) node.fail("an axis is named twice");
  return node.b.failed() ? Shape{} : sorted;
}

bool squeeze(Node& node) {
  const std::optional<Shape> stated = node.list("axes", 1);
  if (!stated && node.has(1)) return false;
  const Shape in = node.shape(0);
  Shape axes = stated ? sorted_axes(node, *stated, static_cast<int64_t>(in.size())) : Shape{};
  for (size_t i = 0; !stated && i < in.size(); ++i) {
    if (in[i] == 1) axes.push_back(static_cast<int64_t>(i));
  }
  TensorId x = node.in(0);
  for (size_t i = axes.size(); i-- > 0;) {
    if (in[static_cast<size_t>(axes[i])] != 1) {
      node.fail(fmt::format("axis {} of {} is not 1 and cannot be squeezed", axes[i], text_of(in)));
      return true;
    }
    x = node.b.squeeze(x, axes[i]);
  }
  node.out(0, x);
  return true;
}

bool unsqueeze(Node& node) {
  const std::optional<Shape> stated = node.list("axes", 1);
  if (!stated) return false;
  const auto rank = node.rank(0) + static_cast<int64_t>(stated->size());
  if (rank > static_cast<int64_t>(kMaxRank)) node.fail(fmt::format("a tensor of rank {} is not possible", rank));
  const Shape axes = sorted_axes(node, *stated, rank);
  TensorId x = node.in(0);
  for (const int64_t axis : axes) x = node.b.unsqueeze(x, axis);
  node.out(0, x);
  return true;
}

bool concat(Node& node) {
  const int64_t rank = node.rank(0);
  const int64_t axis = node.axis(node.integer("axis", node.opset < 4 ? 1 : 0), rank);
  if (node.b.failed()) return true;
  int64_t total = 0;
  for (size_t i = 0; i < node.input_count(); ++i) {
    const Shape part = node.shape(i);
    if (static_cast<int64_t>(part.size()) == rank) total += part[static_cast<size_t>(axis)];
    if (total > kMaxElements) node.fail("the result would have more than 2^46 elements");
    if (node.b.failed()) return true;
  }
  node.out(0, node.b.cat(node.all_inputs(), axis));
  return true;
}

bool split(Node& node) {
  const Shape in = node.shape(0);
  const int64_t axis = node.axis(node.integer("axis", 0), static_cast<int64_t>(in.size()));
  const size_t parts = node.output_count();
  if (node.b.failed() || parts == 0) return parts != 0;
  const int64_t extent = in[static_cast<size_t>(axis)];
  std::optional<Shape> sizes = node.list("split", 1);
  if (!sizes && node.has(1)) return false;
  if (!sizes) {
    const auto each = (extent + static_cast<int64_t>(parts) - 1) / static_cast<int64_t>(parts);
    sizes = Shape(parts, each);
    sizes->back() = extent - each * static_cast<int64_t>(parts - 1);
  }
  int64_t left = extent;
  const bool in_range = std::all_of(sizes->begin(), sizes->end(), [&](int64_t size) {
    if (size < 0 || size > left) return false;
    left -= size;
    return true;
  });
  if (sizes->size() != parts || !in_range || left != 0) {
    node.fail(fmt::format("the sizes given do not split axis {} of {} in {} parts", axis, text_of(in), parts));
    return true;
  }
  const int64_t first = sizes->front();
  const bool even = first > 0 &&
                    std::all_of(sizes->begin(), sizes->end() - 1, [&](int64_t size) { return size == first; }) &&
                    sizes->back() <= first && sizes->back() > 0;
  const TensorId x = node.in(0);
  const std::vector<TensorId> outputs = even ? node.b.split_every(x, first, axis) : node.b.split(x, *sizes, axis);
  for (size_t i = 0; i < outputs.size(); ++i) node.out(i, outputs[i]);
  return true;
}

bool slice(Node& node) {
  const std::optional<std::vector<Cut>> cuts = cuts_of(node);
  if (!cuts) return node.b.failed();
  if (std::any_of(cuts->begin(), cuts->end(), [](const Cut& cut) { return cut.step < 0; })) {
    Shape shape = node.shape(0);
    for (const Cut& cut : *cuts) shape[static_cast<size_t>(cut.axis)] = cut.extent;
    node.carry({{shape, node.dtype(0)}});
    return true;
  }
  TensorId x = node.in(0);
  for (const Cut& cut : *cuts) x = node.b.slice(x, cut.axis, cut.start, std::max(cut.start, cut.end), cut.step);
  node.out(0, x);
  return true;
}

bool expand(Node& node) {
  std::optional<Shape> target = node.integers(1);
  if (!target) return false;
  const Shape in = node.shape(0);
  if (target->size() < in.size()) target->insert(target->begin(), in.size() - target->size(), 1);
  for (size_t i = 0; i < in.size(); ++i) {  // the target may have 1 where the tensor has more
    int64_t& extent = (*target)[target->size() - in.size() + i];
    if (extent == 1) extent = in[i];
  }
  if (target->size() > kMaxRank) node.fail(fmt::format("a shape of rank {} is not possible", target->size()));
  node.out(0, node.b.expand(node.in(0), *target));
  return true;
}

// How often each axis is repeated; before opset 6 two numbers, the times and the axis.
std::optional<Shape> repeats_of(Node& node, size_t rank) {
  if (node.opset >= 6) return node.integers(1);
  const std::optional<double> times = node.scalar(1);
  const std::optional<double> axis = node.scalar(2);
  if (!times || !axis || !(std::abs(*times) < 1e15) || !(*axis >= 0 && *axis < static_cast<double>(rank))) {
    return std::nullopt;
  }
  Shape repeats(rank, 1);
  repeats[static_cast<size_t>(*axis)] = static_cast<int64_t>(*times);
  return repeats;
}

// Each axis becomes two, the first of which is expanded: what Tensor.repeat copies.
bool tile(Node& node) {
  const Shape in = node.shape(0);
  const std::optional<Shape> repeats = repeats_of(node, in.size());
  if (!repeats || repeats->size() != in.size()) return false;
  Shape apart;
  Shape spread;
  Shape joined;
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t times = (*repeats)[i];
    if (times < 0 || (in[i] > 0 && times > kMaxElements / in[i])) {
      node.fail(fmt::format("{} cannot be repeated {} times", text_of(in), times));
      return true;
    }
    apart.insert(apart.end(), {1, in[i]});
    spread.insert(spread.end(), {times, in[i]});
    joined.push_back(times * in[i]);
  }
  node.out(0, node.b.reshape(node.b.expand(node.b.reshape(node.in(0), apart), spread), joined));
  return true;
}

// ONNX: all beginnings, then all ends. PyTorch: pairs from the last axis on, leading axes without padding left out.
std::optional<Shape> torch_pads(Node& node) {
  const auto rank = static_cast<size_t>(node.rank(0));
  const std::optional<Shape> pads = node.list(node.has_attribute("paddings") ? "paddings" : "pads", 1);  // opset 1
  std::optional<Shape> axes = node.integers(3);
  if (!pads || (node.has(3) && !axes)) return std::nullopt;
  if (!axes) {
    axes = Shape(rank);
    std::iota(axes->begin(), axes->end(), 0);
  }
  Shape out(2 * rank, 0);
  if (pads->size() != 2 * axes->size()) {
    node.fail(fmt::format("{} paddings do not fit {} axes", pads->size(), axes->size()));
    return std::nullopt;
  }
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t axis = node.axis((*axes)[i], static_cast<int64_t>(rank));
    const int64_t begin = (*pads)[i];
    const int64_t end = (*pads)[axes->size() + i];
    if (std::max(begin, end) > kMaxElements || std::min(begin, end) < -kMaxElements)
      node.fail("a padding is out of range");
    if (node.b.failed()) return std::nullopt;
    const size_t pair = 2 * (rank - 1 - static_cast<size_t>(axis));
    out[pair] = begin;
    out[pair + 1] = end;
  }
  while (out.size() >= 2 && out.back() == 0 && out[out.size() - 2] == 0) out.resize(out.size() - 2);
  return out;
}

bool pad(Node& node) {
  const std::optional<Shape> pads = torch_pads(node);
  if (!pads) return node.b.failed();
  const TensorId x = node.in(0);
  const std::string mode = node.text("mode", "constant");
  if (pads->empty()) {
    node.forward(0);
  } else if (mode == "constant") {
    node.out(0, node.b.pad(x, *pads));
  } else {
    Shape shape = node.b.shape(x);
    for (size_t i = 0; i < pads->size() / 2; ++i) shape[shape.size() - 1 - i] += (*pads)[2 * i] + (*pads)[2 * i + 1];
    node.carry({{shape, node.b.dtype(x)}});  // reflect, edge, wrap
  }
  return true;
}

// Blocks of b x b pixels to channels and back, as PyTorch's pixel_shuffle does it: two views and a permutation.
bool pixel_shuffle(Node& node) {
  const Shape in = node.shape(0);
  const int64_t b = node.integer("blocksize", 0);
  const bool up = node.type() == "DepthToSpace";
  const bool fits = in.size() == 4 && b >= 1 && b < (1 << 15) &&
                    (up ? in[1] % (b * b) == 0 : in[2] >= 1 && in[3] >= 1 && in[2] % b == 0 && in[3] % b == 0);
  if (!fits) {
    node.fail(fmt::format("blocks of {} do not fit {}", b, text_of(in)));
    return true;
  }
  const TensorId x = node.in(0);
  if (up) {
    const int64_t channels = in[1] / (b * b);
    const TensorId apart = node.b.reshape(x, {in[0], channels, b, b, in[2], in[3]});
    const TensorId moved = node.b.permute(apart, {0, 1, 4, 2, 5, 3});
    node.out(0, node.b.reshape(moved, {in[0], channels, in[2] * b, in[3] * b}));
  } else {
    const TensorId apart = node.b.reshape(x, {in[0], in[1], in[2] / b, b, in[3] / b, b});
    const TensorId moved = node.b.permute(apart, {0, 1, 3, 5, 2, 4});
    node.out(0, node.b.reshape(moved, {in[0], in[1] * b * b, in[2] / b, in[3] / b}));
  }
  return true;
}

constexpr size_t kAnyNumber = static_cast<size_t>(-1);

constexpr Rule kShapeRules[] = {
    {"Concat", concat},
    {"DepthToSpace", pixel_shuffle},
    {"Expand", expand},
    {"Flatten", flatten},
    {"Pad", pad},
    {"Reshape", reshape},
    {"Slice", slice},
    {"SpaceToDepth", pixel_shuffle},
    {"Split", split, kAnyNumber},
    {"Squeeze", squeeze},
    {"Tile", tile},
    {"Transpose", transpose},
    {"Unsqueeze", unsqueeze},
};

}  // namespace

std::optional<std::vector<Cut>> cuts_of(Node& node) {
  const Shape in = node.shape(0);
  const std::optional<Shape> starts = node.list("starts", 1);
  const std::optional<Shape> ends = node.list("ends", 2);
  const std::optional<Shape> axes = node.list("axes", 3);
  const std::optional<Shape> steps = node.integers(4);
  const bool unknown = !starts || !ends || (!axes && node.has(3)) || (!steps && node.has(4));
  if (unknown || starts->size() != ends->size() || (axes && axes->size() != starts->size()) ||
      (steps && steps->size() != starts->size())) {
    return std::nullopt;
  }
  std::vector<Cut> cuts;
  for (size_t i = 0; i < starts->size(); ++i) {
    Cut cut{};
    cut.axis = node.axis(axes ? (*axes)[i] : static_cast<int64_t>(i), static_cast<int64_t>(in.size()));
    if (node.b.failed()) return std::nullopt;
    const int64_t whole = in[static_cast<size_t>(cut.axis)];
    cut.step = std::clamp<int64_t>(steps ? (*steps)[i] : 1, -std::max<int64_t>(whole, 1), std::max<int64_t>(whole, 1));
    const auto bounded = [&](int64_t at) {
      const int64_t wrapped = at < 0 ? at + whole : at;
      return cut.step < 0 ? std::clamp<int64_t>(wrapped, -1, whole - 1) : std::clamp<int64_t>(wrapped, 0, whole);
    };
    cut.start = bounded((*starts)[i]);
    cut.end = bounded((*ends)[i]);
    if (cut.step == 0) {
      node.fail("a slice with step 0 is not possible");
      return std::nullopt;
    }
    const int64_t length = cut.step > 0 ? cut.end - cut.start : cut.start - cut.end;
    const int64_t stride = std::abs(cut.step);
    cut.extent = std::max<int64_t>(0, (length + stride - 1) / stride);
    cuts.push_back(cut);
  }
  return cuts;
}

std::span<const Rule> shape_rules() { return kShapeRules; }

}  // namespace forerun::ingest
