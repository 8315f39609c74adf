// The vocabulary of ForwardBuilder, first part: layers, elementwise ops, products and reductions, with shape inference.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/forward_builder.h"

namespace forerun {
namespace {

// "aten.relu_.default" works in place: the part before the overload ends in an underscore.
bool works_in_place(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot > 0 && name[dot - 1] == '_';
}

bool is_comparison(std::string_view name) {
  static constexpr std::string_view kPrefixes[] = {"aten.eq.", "aten.ne.", "aten.lt.",     "aten.le.",
                                                   "aten.gt.", "aten.ge.", "aten.logical_"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

int64_t at(const Shape& list, size_t i, int64_t otherwise) {
  return list.empty() ? otherwise : list[std::min(i, list.size() - 1)];
}

}  // namespace

TensorId ForwardBuilder::conv(TensorId x, TensorId weight, std::optional<TensorId> bias, const ConvOptions& options) {
  const Shape in = shape(x);
  const Shape w = shape(weight);
  if (in.size() < 3 || w.size() != in.size() || options.groups < 1) {
    fail(fmt::format("convolution of {} with weight {} and {} groups does not fit", text_of(in), text_of(w),
                     options.groups));
    return dummy();
  }
  const int64_t expected = options.transposed ? w[0] : w[1] * options.groups;
  if (in[1] != expected) {
    fail(fmt::format("convolution expects {} channels, its input has {}", expected, in[1]));
    return dummy();
  }
  Shape out = {in[0], options.transposed ? w[1] * options.groups : w[0]};
  const size_t spatial = in.size() - 2;
  Shape stride(spatial), padding(spatial), dilation(spatial), output_padding(spatial);
  for (size_t i = 0; i < spatial; ++i) {
    stride[i] = at(options.stride, i, 1);
    padding[i] = at(options.padding, i, 0);
    dilation[i] = at(options.dilation, i, 1);
    output_padding[i] = at(options.output_padding, i, 0);
    const int64_t reach = dilation[i] * (w[i + 2] - 1);
    if (stride[i] < 1 || dilation[i] < 1 || padding[i] < 0 || w[i + 2] < 1) {
      fail("convolution with a stride, dilation or kernel below 1, or a padding below 0");
      return dummy();
    }
    const int64_t extent = options.transposed
                               ? (in[i + 2] - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i] + 1
                               : (in[i + 2] + 2 * padding[i] - reach - 1 + stride[i]) / stride[i];
    if (extent < 1 || (!options.transposed && in[i + 2] + 2 * padding[i] < reach + 1)) {
      fail(fmt::format("input {} is too small for a convolution of kernel {}", text_of(in),
                       text_of({w.begin() + 2, w.end()})),
           "use a larger input");
      return dummy();
    }
    out.push_back(extent);
  }
  std::vector<TensorId> inputs = {x, weight};
  if (bias) inputs.push_back(*bias);
  return emit("aten.convolution.default", inputs, out, dtype(x),
              {{"stride", stride},
               {"padding", padding},
               {"dilation", dilation},
               {"transposed", options.transposed},
               {"output_padding", output_padding},
               {"groups", options.groups}});
}

TensorId ForwardBuilder::linear(TensorId x, TensorId weight, std::optional<TensorId> bias) {
  Shape out = shape(x);
  const Shape w = shape(weight);
  if (out.empty() || w.size() != 2 || out.back() != w[1]) {
    fail(fmt::format("linear layer with weight {} does not fit an input {}", text_of(w), text_of(out)));
    return dummy();
  }
  out.back() = w[0];
  std::vector<TensorId> inputs = {x, weight};
  if (bias) inputs.push_back(*bias);
  return emit("aten.linear.default", inputs, out, dtype(x));
}

TensorId ForwardBuilder::batch_norm(TensorId x, TensorId weight, TensorId bias, TensorId mean, TensorId variance,
                                    std::optional<TensorId> batches_tracked, double momentum, double eps) {
  if (shape(x).size() < 2 || extent(x, 1) != extent(weight, 0)) {
    fail(fmt::format("batch norm of {} features does not fit an input {}", extent(weight, 0), text_of(shape(x))));
    return dummy();
  }
  if (batches_tracked) unary("aten.add_.Tensor", *batches_tracked, {{"other", int64_t{1}}});
  return emit("aten.batch_norm.default", {x, weight, bias, mean, variance}, shape(x), dtype(x),
              {{"training", true}, {"momentum", momentum}, {"eps", eps}});
}

TensorId ForwardBuilder::layer_norm(TensorId x, std::optional<TensorId> weight, std::optional<TensorId> bias,
                                    const Shape& normalized, double eps) {
  const Shape in = shape(x);
  if (in.size() < normalized.size() || !std::equal(normalized.rbegin(), normalized.rend(), in.rbegin())) {
    fail(fmt::format("layer norm over {} does not fit an input {}", text_of(normalized), text_of(in)));
    return dummy();
  }
  std::vector<TensorId> inputs = {x};
  if (weight) inputs.push_back(*weight);
  if (bias) inputs.push_back(*bias);
  return emit("aten.layer_norm.default", inputs, in, dtype(x), {{"normalized_shape", normalized}, {"eps", eps}});
}

TensorId ForwardBuilder::group_norm(TensorId x, TensorId weight, TensorId bias, int64_t groups, double eps) {
  if (groups < 1 || extent(x, 1) % groups != 0) {
    fail(fmt::format("{} groups do not divide {} channels", groups, extent(x, 1)));
    return dummy();
  }
  return emit("aten.group_norm.default", {x, weight, bias}, shape(x), dtype(x), {{"num_groups", groups}, {"eps", eps}});
}

TensorId ForwardBuilder::embedding(TensorId weight, TensorId indices, int64_t padding_index) {
  Shape out = shape(indices);
  out.push_back(extent(weight, 1));
  return emit("aten.embedding.default", {weight, indices}, out, dtype(weight), {{"padding_idx", padding_index}});
}

TensorId ForwardBuilder::embedding_bag(TensorId weight, TensorId indices, TensorId offsets) {
  return emit("aten.embedding_bag.default", {weight, indices, offsets}, {extent(offsets, 0), extent(weight, 1)},
              dtype(weight), {{"mode", int64_t{0}}});
}

Shape ForwardBuilder::pooled(TensorId x, const PoolOptions& options) {
  Shape out = shape(x);
  if (out.size() < 3) {
    fail("pooling needs an input of rank 3 or 4");
    return {1};
  }
  const size_t spatial = std::min<size_t>(2, out.size() - 2);
  for (size_t i = 0; i < spatial; ++i) {
    int64_t& extent = out[out.size() - spatial + i];
    const int64_t kernel = at(options.kernel, i, 1);
    const int64_t stride = options.stride.empty() ? kernel : at(options.stride, i, 1);
    const int64_t padding = at(options.padding, i, 0);
    const int64_t dilation = at(options.dilation, i, 1);
    if (kernel < 1 || stride < 1 || dilation < 1 || padding < 0) {
      fail("pooling with a kernel, stride or dilation below 1, or a padding below 0");
      return {1};
    }
    const int64_t room = extent + 2 * padding - dilation * (kernel - 1) - 1;
    if (room < 0) {
      fail(fmt::format("input {} is too small to pool by {}", text_of(shape(x)), kernel), "use a larger input");
      return {1};
    }
    int64_t count = (room + (options.ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (options.ceil_mode && (count - 1) * stride >= extent + padding) --count;
    extent = count;
  }
  return out;
}

TensorId ForwardBuilder::max_pool2d(TensorId x, const PoolOptions& options) {
  return emit("aten.max_pool2d.default", {x}, pooled(x, options), dtype(x),
              {{"kernel_size", options.kernel},
               {"stride", options.stride.empty() ? options.kernel : options.stride},
               {"padding", options.padding},
               {"dilation", options.dilation},
               {"ceil_mode", options.ceil_mode}});
}

TensorId ForwardBuilder::avg_pool2d(TensorId x, const PoolOptions& options) {
  return emit("aten.avg_pool2d.default", {x}, pooled(x, options), dtype(x),
              {{"kernel_size", options.kernel},
               {"stride", options.stride.empty() ? options.kernel : options.stride},
               {"padding", options.padding},
               {"ceil_mode", options.ceil_mode},
               {"count_include_pad", options.count_include_pad}});
}

TensorId ForwardBuilder::adaptive_avg_pool2d(TensorId x, const Shape& output) {
  Shape out = shape(x);
  if (out.size() < 3 || output.size() != 2) {
    fail("adaptive pooling needs an image and two output extents");
    return dummy();
  }
  out[out.size() - 2] = output[0];
  out[out.size() - 1] = output[1];
  return emit("aten.adaptive_avg_pool2d.default", {x}, out, dtype(x), {{"output_size", output}});
}

TensorId ForwardBuilder::dropout(TensorId x, double p) {
  return emit("aten.dropout.default", {x}, shape(x), dtype(x), {{"p", p}, {"train", true}});
}

TensorId ForwardBuilder::attention(TensorId query, TensorId key, TensorId value, const AttentionOptions& options) {
  Shape out = shape(query);
  if (out.size() != 4 || shape(key).size() != 4 || shape(value).size() != 4 || out[3] != extent(key, 3) ||
      extent(key, 2) != extent(value, 2)) {
    fail(fmt::format("attention of query {} over key {} does not fit", text_of(out), text_of(shape(key))));
    return dummy();
  }
  out[3] = extent(value, 3);
  std::vector<TensorId> inputs = {query, key, value};
  if (options.mask) inputs.push_back(*options.mask);
  Attributes attributes = {{"dropout_p", options.dropout}, {"is_causal", options.causal}};
  if (options.scale) attributes.set("scale", *options.scale);
  if (options.grouped_query) attributes.set("enable_gqa", true);
  if (options.never_masked) attributes.set("never_masked", true);
  return emit("aten.scaled_dot_product_attention.default", inputs, out, dtype(query), attributes);
}

TensorId ForwardBuilder::rnn(TensorId x, const std::vector<TensorId>& weights, const RnnOptions& options) {
  static constexpr std::string_view kNames[] = {"aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input",
                                                "aten.rnn_relu.input"};
  const int64_t directions = options.bidirectional ? 2 : 1;
  const auto expected = static_cast<size_t>(options.layers * directions * (options.bias ? 4 : 2));
  Shape out = shape(x);
  if (out.size() != 3 || options.layers < 1 || options.hidden < 1 || weights.size() != expected) {
    fail(fmt::format("recurrent layer of {} layers with {} weights does not fit an input {}", options.layers,
                     weights.size(), text_of(out)));
    return dummy();
  }
  out[2] = options.hidden * directions;
  std::vector<TensorId> inputs = {x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  return emit(kNames[static_cast<size_t>(options.kind)], inputs, out, dtype(x),
              {{"hidden_size", options.hidden},
               {"num_layers", options.layers},
               {"has_biases", options.bias},
               {"dropout", options.dropout},
               {"bidirectional", options.bidirectional},
               {"batch_first", options.batch_first}});
}

TensorId ForwardBuilder::unary(std::string_view name, TensorId x, const Attributes& attributes) {
  if (works_in_place(name)) return emit_in_place(name, {x}, attributes);
  return emit(name, {x}, shape(x), is_comparison(name) ? DType::boolean : dtype(x), attributes);
}

TensorId ForwardBuilder::gelu(TensorId x, bool tanh_approximation) {
  return unary("aten.gelu.default", x, {{"approximate", tanh_approximation ? "tanh" : "none"}});
}

std::optional<Shape> ForwardBuilder::broadcast(TensorId a, TensorId b) {
  const Shape left = shape(a);
  const Shape right = shape(b);
  Shape out(std::max(left.size(), right.size()));
  for (size_t i = 0; i < out.size(); ++i) {  // from the last dimension
    const int64_t l = i < left.size() ? left[left.size() - 1 - i] : 1;
    const int64_t r = i < right.size() ? right[right.size() - 1 - i] : 1;
    if (l != r && l != 1 && r != 1) {
      fail(fmt::format("shapes {} and {} do not broadcast", text_of(left), text_of(right)));
      return std::nullopt;
    }
    out[out.size() - 1 - i] = l == 1 ? r : l;
  }
  return out;
}

TensorId ForwardBuilder::binary(std::string_view name, TensorId a, TensorId b, const Attributes& attributes) {
  const std::optional<Shape> out = broadcast(a, b);
  if (!out) return dummy();
  if (works_in_place(name)) return emit_in_place(name, {a, b}, attributes);
  return emit(name, {a, b}, *out, is_comparison(name) ? DType::boolean : promote(dtype(a), dtype(b)), attributes);
}

TensorId ForwardBuilder::where(TensorId condition, TensorId a, TensorId b) {
  const std::optional<Shape> values = broadcast(a, b);
  if (!values) return dummy();
  const TensorId wide = shape(a) == *values ? a : b;
  const std::optional<Shape> out = broadcast(condition, wide);
  if (!out) return dummy();
  return emit("aten.where.self", {condition, a, b}, *out, promote(dtype(a), dtype(b)));
}

TensorId ForwardBuilder::to_dtype(TensorId x, DType target) {
  return emit("aten.to.dtype", {x}, shape(x), target, {{"dtype", std::string(name_of(target))}});
}

TensorId ForwardBuilder::type_as(TensorId x, TensorId like) {
  return emit("aten.type_as.default", {x, like}, shape(x), dtype(like));
}

TensorId ForwardBuilder::matmul(TensorId a, TensorId b, bool autocast) {
  const Shape left = shape(a);
  const Shape right = shape(b);
  if (left.empty() || right.empty() || left.back() != (right.size() == 1 ? right[0] : right[right.size() - 2])) {
    fail(fmt::format("matrix product of {} and {} does not fit", text_of(left), text_of(right)));
    return dummy();
  }
  Shape batch(std::max(left.size(), right.size()) > 2 ? std::max(left.size(), right.size()) - 2 : 0, 1);
  for (size_t i = 0; i < batch.size(); ++i) {
    const int64_t l = i + 2 < left.size() ? left[left.size() - 3 - i] : 1;
    const int64_t r = i + 2 < right.size() ? right[right.size() - 3 - i] : 1;
    if (l != r && l != 1 && r != 1) {
      fail(fmt::format("batches of {} and {} do not broadcast", text_of(left), text_of(right)));
      return dummy();
    }
    batch[batch.size() - 1 - i] = l == 1 ? r : l;
  }
  Shape out = batch;
  if (left.size() > 1) out.push_back(left[left.size() - 2]);
  if (right.size() > 1) out.push_back(right.back());
  return emit("aten.matmul.default", {a, b}, out, dtype(a), autocast ? Attributes{} : Attributes{{"autocast", false}});
}

TensorId ForwardBuilder::bmm(TensorId a, TensorId b) {
  const Shape left = shape(a);
  const Shape right = shape(b);
  if (left.size() != 3 || right.size() != 3 || left[0] != right[0] || left[2] != right[1]) {
    fail(fmt::format("batched product of {} and {} does not fit", text_of(left), text_of(right)));
    return dummy();
  }
  return emit("aten.bmm.default", {a, b}, {left[0], left[1], right[2]}, promote(dtype(a), dtype(b)));
}

TensorId ForwardBuilder::addmm(TensorId bias, TensorId a, TensorId b) {
  if (shape(a).size() != 2 || shape(b).size() != 2 || extent(a, 1) != extent(b, 0)) {
    fail(fmt::format("matrix product of {} and {} does not fit", text_of(shape(a)), text_of(shape(b))));
    return dummy();
  }
  return emit("aten.addmm.default", {bias, a, b}, {extent(a, 0), extent(b, 1)}, dtype(a));
}

TensorId ForwardBuilder::softmax(TensorId x, int64_t dim) {
  return emit("aten.softmax.int", {x}, shape(x), dtype(x), {{"dim", dim}});
}

TensorId ForwardBuilder::log_softmax(TensorId x, int64_t dim) {
  return emit("aten.log_softmax.int", {x}, shape(x), dtype(x), {{"dim", dim}});
}

Shape ForwardBuilder::reduced(TensorId x, const Shape& dims, bool keep_dims) {
  const Shape in = shape(x);
  std::vector<bool> gone(in.size(), dims.empty());
  for (const int64_t dim : dims) {
    const auto wrapped = static_cast<size_t>(wrap(dim, static_cast<int64_t>(in.size())));
    if (wrapped < gone.size()) gone[wrapped] = true;
  }
  Shape out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!gone[i]) {
      out.push_back(in[i]);
    } else if (keep_dims) {
      out.push_back(1);
    }
  }
  return out;
}

TensorId ForwardBuilder::reduce(std::string_view name, TensorId x, const Shape& dims, bool keep_dims) {
  return emit(name, {x}, reduced(x, dims, keep_dims), dtype(x), {{"dim", dims}, {"keepdim", keep_dims}});
}

TensorId ForwardBuilder::mean(TensorId x, const Shape& dims, bool keep_dims) {
  return reduce("aten.mean.dim", x, dims, keep_dims);
}

TensorId ForwardBuilder::sum(TensorId x, const Shape& dims, bool keep_dims) {
  return reduce("aten.sum.dim_IntList", x, dims, keep_dims);
}

}  // namespace forerun
