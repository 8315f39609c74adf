// Rules of layers: convolutions, matrix products, normalisation, pooling, softmax, dropout.
//
// Paddings that differ between the two ends of an axis become a padding op of their own, as PyTorch needs them.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ingest/onnx/rules.h"

namespace forerun::ingest {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 15;  // of kernels, strides, dilations, paddings; keeps products in range

// The geometry of a convolution or pooling window over the spatial dimensions.
struct Window {
  Shape kernel, stride, dilation;
  Shape begin, end;  // paddings

  [[nodiscard]] bool symmetric() const { return begin == end; }
};

bool check_range(Node& node, std::string_view name, const Shape& list, size_t length, int64_t lowest) {
  if (list.size() != length) {
    node.fail(fmt::format("attribute '{}' has {} entries, {} are needed", name, list.size(), length));
    return false;
  }
  for (const int64_t entry : list) {
    if (entry < lowest || entry > kMaxWindow) {
      node.fail(fmt::format("attribute '{}' has the impossible entry {}", name, entry));
      return false;
    }
  }
  return true;
}

// SAME: the output has extent / stride, rounded up; an odd padding goes to the end (UPPER) or the beginning (LOWER).
void pad_to_same(Window& window, const Shape& extents, bool upper) {
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t steps = (extents[i] + window.stride[i] - 1) / window.stride[i];
    const int64_t reach = (window.kernel[i] - 1) * window.dilation[i] + 1;
    const int64_t total = std::max<int64_t>(0, (steps - 1) * window.stride[i] + reach - extents[i]);
    window.begin[i] = upper ? total / 2 : total - total / 2;
    window.end[i] = total - window.begin[i];
  }
}

// Nothing after a failure. `kernel`: empty to take the attribute.
std::optional<Window> window_of(Node& node, Shape kernel, bool transposed = false) {
  const Shape in = node.shape(0);
  if (in.size() < 3) {
    node.fail(fmt::format("its input {} has no spatial dimensions", text_of(in)));
    return std::nullopt;
  }
  const size_t spatial = in.size() - 2;
  const auto list = [&](std::string_view name, size_t length, int64_t otherwise) {
    return node.has_attribute(name) ? node.integers(name) : Shape(length, otherwise);
  };
  Window window;
  window.kernel = kernel.empty() ? node.integers("kernel_shape") : std::move(kernel);
  window.stride = list("strides", spatial, 1);
  window.dilation = list("dilations", spatial, 1);
  const Shape pads = list("pads", 2 * spatial, 0);
  if (!check_range(node, "kernel_shape", window.kernel, spatial, 1) ||
      !check_range(node, "strides", window.stride, spatial, 1) ||
      !check_range(node, "dilations", window.dilation, spatial, 1) ||
      !check_range(node, "pads", pads, 2 * spatial, 0)) {
    return std::nullopt;
  }
  const auto half = pads.begin() + static_cast<int64_t>(spatial);
  window.begin.assign(pads.begin(), half);
  window.end.assign(half, pads.end());
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (automatic.starts_with("SAME") && !transposed) {
    pad_to_same(window, {in.begin() + 2, in.end()}, automatic == "SAME_UPPER");
  } else if (automatic != "NOTSET") {
    window.begin.assign(spatial, 0);
    window.end.assign(spatial, 0);
  }
  return window;
}

// Pads x where the window's paddings differ between the ends, and takes them out of the window.
TensorId padded(Node& node, TensorId x, Window& window) {
  if (window.symmetric()) return x;
  Shape pads;
  for (size_t i = window.begin.size(); i-- > 0;) {
    pads.push_back(window.begin[i]);
    pads.push_back(window.end[i]);
  }
  std::fill(window.begin.begin(), window.begin.end(), 0);
  window.end = window.begin;
  return node.b.pad(x, pads);
}

std::optional<int64_t> groups_of(Node& node, const Shape& weight) {
  const int64_t groups = node.integer("group", 1);
  if (groups >= 1 && weight.size() >= 2 && groups <= weight[0]) return groups;
  node.fail(fmt::format("{} groups do not fit a weight {}", groups, text_of(weight)));
  return std::nullopt;
}

void check_bias(Node& node, int64_t features) {
  if (node.has(2) && node.shape(2) != Shape{features}) {
    node.fail(fmt::format("a bias {} does not fit {} output channels", text_of(node.shape(2)), features));
  }
}

bool conv(Node& node) {
  const Shape weight = node.shape(1);
  if (weight.size() < 3) {
    node.fail(fmt::format("the weight {} is not one of a convolution", text_of(weight)));
    return true;
  }
  std::optional<Window> window = window_of(node, {weight.begin() + 2, weight.end()});
  const std::optional<int64_t> groups = groups_of(node, weight);
  if (!window || !groups) return true;
  const TensorId x = padded(node, node.in(0), *window);
  const ConvOptions options{.stride = window->stride,
                            .padding = window->begin,
                            .dilation = window->dilation,
                            .groups = *groups,
                            .transposed = false,
                            .output_padding = Shape(window->stride.size(), 0)};
  const TensorId kernel = node.in(1);
  check_bias(node, options.transposed ? weight[1] * *groups : weight[0]);
  node.out(0, node.b.conv(x, kernel, node.optional_in(2), options));
  return true;
}

bool conv_transpose(Node& node) {
  const Shape weight = node.shape(1);
  if (weight.size() < 3) {
    node.fail(fmt::format("the weight {} is not one of a convolution", text_of(weight)));
    return true;
  }
  std::optional<Window> window = window_of(node, {weight.begin() + 2, weight.end()}, true);
  const std::optional<int64_t> groups = groups_of(node, weight);
  if (!window || !groups) return true;
  const size_t spatial = window->stride.size();
  Shape extra = node.has_attribute("output_padding") ? node.integers("output_padding") : Shape(spatial, 0);
  if (!check_range(node, "output_padding", extra, spatial, 0)) return true;
  // Cutting more from the end than from the beginning is what a smaller output padding does.
  for (size_t i = 0; i < spatial; ++i) extra[i] -= window->end[i] - window->begin[i];
  const Shape in = node.shape(0);
  const Shape stated = node.integers("output_shape");
  const bool same = node.text("auto_pad", "NOTSET").starts_with("SAME");
  if (!stated.empty() && stated.size() < spatial) return false;
  for (size_t i = 0; i < spatial && (same || !stated.empty()); ++i) {
    const int64_t full = (in[i + 2] - 1) * window->stride[i] + (weight[i + 2] - 1) * window->dilation[i] + 1;
    const int64_t target = stated.empty() ? in[i + 2] * window->stride[i] : stated[stated.size() - spatial + i];
    if (target < 1 || target > kMaxElements) return false;
    const int64_t cut = std::max<int64_t>(0, full - target);
    window->begin[i] = cut - cut / 2;
    extra[i] = target - full + 2 * window->begin[i];
  }
  const ConvOptions options{.stride = window->stride,
                            .padding = window->begin,
                            .dilation = window->dilation,
                            .groups = *groups,
                            .transposed = true,
                            .output_padding = extra};
  const TensorId x = node.in(0);
  const TensorId kernel = node.in(1);
  check_bias(node, options.transposed ? weight[1] * *groups : weight[0]);
  node.out(0, node.b.conv(x, kernel, node.optional_in(2), options));
  return true;
}

TensorId scaled(Node& node, TensorId x, double factor) { return factor == 1.0 ? x : node.b.mul_scalar(x, factor); }

bool gemm(Node& node) {
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    node.fail(fmt::format("needs two matrices, not {} and {}", text_of(node.shape(0)), text_of(node.shape(1))));
    return true;
  }
  const bool flip = node.integer("transB", 0) != 0;
  const double alpha = node.real("alpha", 1.0);
  const double beta = node.real("beta", 1.0);
  const int64_t features = node.shape(1)[flip ? 0 : 1];
  const bool vector_bias = node.has(2) && node.shape(2) == Shape{features} && beta == 1.0 && alpha == 1.0;
  TensorId a = node.in(0);
  if (node.integer("transA", 0) != 0) a = node.b.transpose(a, 0, 1);
  const TensorId b = node.in(1);
  if (flip && (vector_bias || !node.has(2))) {
    const std::optional<TensorId> bias = node.optional_in(2);
    node.out(0, scaled(node, node.b.linear(a, b, bias), alpha));
  } else if (vector_bias) {
    node.out(0, node.b.addmm(node.in(2), a, b));
  } else {
    TensorId result = scaled(node, node.b.matmul(a, flip ? node.b.transpose(b, 0, 1) : b), alpha);
    if (node.has(2)) result = node.b.add(result, scaled(node, node.in(2), beta));
    node.out(0, result);
  }
  return true;
}

// A product with a weight matrix is nn.Linear; the exporter has transposed its weight and set its bias apart.
bool matmul(Node& node) {
  const TensorId a = node.in(0);
  const TensorId b = node.in(1);
  if (node.is_transposed(1)) {
    node.out(0, node.b.linear(a, b, node.take_following_bias(node.b.extent(b, 0))));
  } else {
    node.out(0, node.b.matmul(a, b));
  }
  return true;
}

// Whether inputs `first` to `last` are vectors with one entry for each channel (dimension 1) of input 0; else fails.
bool check_channels(Node& node, size_t first, size_t last) {
  const Shape in = node.shape(0);
  for (size_t i = first; i <= last; ++i) {
    if (in.size() >= 2 && node.shape(i) == Shape{in[1]}) continue;
    node.fail(
        fmt::format("input {} of shape {} does not fit the channels of {}", i, text_of(node.shape(i)), text_of(in)));
    return false;
  }
  return true;
}

bool batch_norm(Node& node) {
  if (node.opset < 9 && node.integer("spatial", 1) == 0) {
    node.fail(fmt::format("opset {} lets a batch norm keep statistics of every element (spatial = 0)", node.opset),
              "PyTorch has no such layer; export the model for opset 9 or later");
    return true;
  }
  if (!check_channels(node, 1, 4)) return true;
  const TensorId x = node.in(0);
  const TensorId weight = node.in(1);
  const TensorId bias = node.in(2);
  const TensorId mean = node.in(3);
  const TensorId variance = node.in(4);
  const TensorId tracked = node.b.buffer("num_batches_tracked", {}, DType::int64);
  const double momentum = 1.0 - node.real("momentum", 0.9);
  node.out(0, node.b.batch_norm(x, weight, bias, mean, variance, tracked, momentum, node.real("epsilon", 1e-5)));
  for (size_t i = 1; i < node.output_count(); ++i) node.out(i, i % 2 == 1 ? mean : variance);
  return true;
}

bool layer_norm(Node& node) {
  const Shape in = node.shape(0);
  const int64_t axis = node.axis(node.integer("axis", -1), static_cast<int64_t>(in.size()));
  if (node.b.failed()) return true;
  const Shape normalized(in.begin() + axis, in.end());
  for (const size_t i : {1, 2}) {
    if (node.has(i) && node.shape(i) != normalized) return false;
  }
  const TensorId x = node.in(0);
  const std::optional<TensorId> weight = node.optional_in(1);
  node.out(0, node.b.layer_norm(x, weight, node.optional_in(2), normalized, node.real("epsilon", 1e-5)));
  return true;
}

bool group_norm(Node& node) {
  if (node.type() == "GroupNormalization" && node.opset < 21) return false;  // it scaled groups, not channels
  if (!check_channels(node, 1, 2)) return true;
  const int64_t channels = node.shape(0)[1];
  const int64_t groups = node.type() == "InstanceNormalization" ? channels : node.integer("num_groups", 0);
  const TensorId x = node.in(0);
  const TensorId weight = node.in(1);
  node.out(0, node.b.group_norm(x, weight, node.in(2), groups, node.real("epsilon", 1e-5)));
  return true;
}

// Pooling over three dimensions is not in the vocabulary: carried with its shape.
void carry_pool(Node& node, const Window& window) {
  Shape shape = node.shape(0);
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t room =
        shape[i + 2] + window.begin[i] + window.end[i] - (window.kernel[i] - 1) * window.dilation[i] - 1;
    const int64_t rounding = node.integer("ceil_mode", 0) != 0 ? window.stride[i] - 1 : 0;
    if (room < 0) node.fail(fmt::format("input {} is too small to pool by {}", text_of(shape), window.kernel[i]));
    shape[i + 2] = (std::max<int64_t>(room, 0) + rounding) / window.stride[i] + 1;
  }
  node.carry({{shape, node.dtype(0)}});
}

bool pool(Node& node) {
  std::optional<Window> window = window_of(node, {});
  if (!window) return true;
  const size_t spatial = window->kernel.size();
  if (spatial > 2) {
    carry_pool(node, *window);
    return true;
  }
  const bool average = node.type() == "AveragePool";
  TensorId x = padded(node, node.in(0), *window);
  PoolOptions options{.kernel = window->kernel,
                      .stride = window->stride,
                      .padding = window->begin,
                      .dilation = window->dilation,
                      .ceil_mode = node.integer("ceil_mode", 0) != 0,
                      .count_include_pad = node.integer("count_include_pad", 0) != 0};
  if (spatial == 1) {  // as PyTorch does it: an image of height 1
    x = node.b.unsqueeze(x, -2);
    for (Shape* list : {&options.kernel, &options.stride, &options.dilation}) list->insert(list->begin(), 1);
    options.padding.insert(options.padding.begin(), 0);
  }
  TensorId y = average ? node.b.avg_pool2d(x, options) : node.b.max_pool2d(x, options);
  if (spatial == 1) y = node.b.squeeze(y, -2);
  node.out(0, y);
  return true;
}

bool global_pool(Node& node) {
  const int64_t rank = node.rank(0);
  if (rank < 3) {
    node.fail(fmt::format("its input {} has no spatial dimensions", text_of(node.shape(0))));
    return true;
  }
  Shape dims(static_cast<size_t>(rank - 2));
  std::iota(dims.begin(), dims.end(), 2);
  const TensorId x = node.in(0);
  if (node.type() == "GlobalMaxPool") {
    node.out(0, node.b.reduce("aten.amax.default", x, dims, true));
  } else {
    node.out(0, rank == 4 ? node.b.adaptive_avg_pool2d(x, {1, 1}) : node.b.mean(x, dims, true));
  }
  return true;
}

// Before opset 13 softmax ran over all dimensions from `axis` on, seen as one.
bool softmax(Node& node) {
  const Shape in = node.shape(0);
  const auto rank = static_cast<int64_t>(in.size());
  const int64_t axis = node.axis(node.integer("axis", node.opset < 13 ? 1 : -1), rank);
  if (node.b.failed()) return true;
  const auto apply = [&](TensorId x, int64_t dim) {
    return node.type() == "Softmax" ? node.b.softmax(x, dim) : node.b.log_softmax(x, dim);
  };
  const bool flattens = node.opset < 13 && axis != rank - 1;
  if (!flattens) {
    node.out(0, apply(node.in(0), axis));
  } else {
    const TensorId flat =
        axis == 0 ? node.b.reshape(node.in(0), {1, *checked_elements(in)}) : node.b.flatten(node.in(0), axis);
    node.out(0, node.b.reshape(apply(flat, axis == 0 ? 1 : axis), in));
  }
  return true;
}

bool dropout(Node& node) {
  const double ratio = node.scalar(1).value_or(node.real("ratio", 0.5));
  if (!(ratio >= 0 && ratio < 1)) {
    node.fail(fmt::format("a dropout of {} is not possible", ratio));
    return true;
  }
  node.out(0, node.b.dropout(node.in(0), ratio));
  return true;
}

constexpr Rule kLayersRules[] = {
    {"AveragePool", pool},
    {"BatchNormalization", batch_norm, 5},
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"Dropout", dropout},
    {"Gemm", gemm},
    {"GlobalAveragePool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"GroupNormalization", group_norm},
    {"InstanceNormalization", group_norm},
    {"LayerNormalization", layer_norm},
    {"LogSoftmax", softmax},
    {"MatMul", matmul},
    {"MaxPool", pool},
    {"Softmax", softmax},
};

}  // namespace

std::span<const Rule> layer_rules() { return kLayersRules; }

}  // namespace forerun::ingest
