#include "whatif/traced_call.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace forerun::whatif {
namespace {

using Results = std::vector<TensorId>;
using EmitCall = Results (*)(ForwardBuilder&, const TracedCall&);

int64_t grown(const TracedCall& c, int64_t extent) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(extent) * c.factor));
}

// The sizes that a view or reshape names: where its tensor has grown with the batch, one of them grows too. That is the
// batch itself, or else what leads, or the first multiple of it.
Shape sizes_of(const ForwardBuilder& b, const TracedCall& c, size_t argument) {
  Shape sizes = c.op.ints(argument);
  int64_t elements = 1;
  for (const int64_t extent : b.shape(c.in(0))) elements *= extent;
  if (c.factor == 1 || c.batch <= 0 || elements == c.op.elements(0)) return sizes;
  if (sizes.empty() || sizes.front() == -1) return sizes;  // what is left over grows
  auto found = std::find(sizes.begin(), sizes.end(), c.batch);
  if (found == sizes.end() && sizes.front() % c.batch == 0) found = sizes.begin();
  const bool rest = std::find(sizes.begin(), sizes.end(), -1) != sizes.end();
  if (found == sizes.end() && !rest) {
    found = std::find_if(sizes.begin(), sizes.end(), [&](int64_t s) { return s > 0 && s % c.batch == 0; });
  }
  if (found != sizes.end()) *found = grown(c, *found);
  return sizes;
}

Results convolve(ForwardBuilder& b, const TracedCall& c, bool transposed) {
  ConvOptions options;
  options.stride = c.op.ints(3);
  options.padding = c.op.ints(4);
  options.transposed = transposed;
  options.dilation = c.op.ints(transposed ? 7 : 5);
  if (transposed) options.output_padding = c.op.ints(5);
  options.groups = c.op.integer(6, 1);
  if (options.stride.size() != 2 || options.padding.size() != 2 || options.dilation.size() != 2) {
    b.fail("a convolution of " + std::to_string(options.stride.size()) + " dimensions");
    return {};
  }
  return {b.conv(c.in(0), c.in(1), c.optional(2), options)};
}
Results conv2d(ForwardBuilder& b, const TracedCall& c) { return convolve(b, c, false); }
Results conv_transpose2d(ForwardBuilder& b, const TracedCall& c) { return convolve(b, c, true); }

Results linear_call(ForwardBuilder& b, const TracedCall& c) { return {b.linear(c.in(0), c.in(1), c.optional(2))}; }
Results addmm_call(ForwardBuilder& b, const TracedCall& c) { return {b.addmm(c.in(0), c.in(1), c.in(2))}; }
Results matmul_call(ForwardBuilder& b, const TracedCall& c) { return {b.matmul(c.in(0), c.in(1))}; }
Results bmm_call(ForwardBuilder& b, const TracedCall& c) { return {b.bmm(c.in(0), c.in(1))}; }

Results batch_norm_call(ForwardBuilder& b, const TracedCall& c) {
  if (!c.has(1) || !c.has(2) || !c.has(3) || !c.has(4)) {
    b.fail("a batch norm without parameters or statistics");
    return {};
  }
  return {b.batch_norm(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), std::nullopt)};
}
Results layer_norm_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.layer_norm(c.in(0), c.optional(2), c.optional(3), c.op.ints(1))};
}
Results group_norm_call(ForwardBuilder& b, const TracedCall& c) {
  if (!c.has(2) || !c.has(3)) {
    b.fail("a group norm without parameters");
    return {};
  }
  return {b.group_norm(c.in(0), c.in(2), c.in(3), c.op.integer(1, 1))};
}
Results embedding_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.embedding(c.in(0), c.in(1), c.op.integer(2, -1))};
}

PoolOptions pool_options(const TracedCall& c) {
  PoolOptions options;
  options.kernel = c.op.ints(1);
  options.stride = c.op.ints(2);
  options.padding = c.op.ints(3);
  if (options.kernel.size() == 1) options.kernel = {options.kernel[0], options.kernel[0]};
  if (options.stride.size() == 1) options.stride = {options.stride[0], options.stride[0]};
  if (options.padding.size() != 2) options.padding = Shape(2, options.padding.empty() ? 0 : options.padding[0]);
  return options;
}
Results max_pool_call(ForwardBuilder& b, const TracedCall& c) {
  PoolOptions options = pool_options(c);
  options.ceil_mode = c.op.flag(5, false);
  return {b.max_pool2d(c.in(0), options)};
}
Results avg_pool_call(ForwardBuilder& b, const TracedCall& c) {
  PoolOptions options = pool_options(c);
  options.ceil_mode = c.op.flag(4, false);
  options.count_include_pad = c.op.flag(5, true);
  return {b.avg_pool2d(c.in(0), options)};
}
Results adaptive_pool_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.adaptive_avg_pool2d(c.in(0), c.op.ints(1))};
}

Results dropout_call(ForwardBuilder& b, const TracedCall& c) {
  const double p = c.op.flag(2, true) ? c.op.number(1, 0.5) : 0;
  if (c.op.name.ends_with("_")) return {b.unary("aten.dropout_.default", c.in(0), {{"p", p}})};
  return {b.dropout(c.in(0), p)};
}

Results attention_call(ForwardBuilder& b, const TracedCall& c) {
  AttentionOptions options;
  options.mask = c.optional(3);
  options.dropout = c.op.number(4, 0);
  options.causal = c.op.flag(5, false);
  const double scale = c.op.number(6, 0);
  if (scale > 0) options.scale = scale;
  options.grouped_query = c.op.flag(7, false);
  return {b.attention(c.in(0), c.in(1), c.in(2), options)};
}

// Weights of recurrent layers are not in the file: they follow from the input and the hidden state.
Results recurrent_call(ForwardBuilder& b, const TracedCall& c) {
  const bool lstm = c.op.name == "aten::lstm";
  RnnOptions options;
  options.kind = lstm                            ? RnnKind::lstm
                 : c.op.name == "aten::gru"      ? RnnKind::gru
                 : c.op.name == "aten::rnn_tanh" ? RnnKind::tanh
                                                 : RnnKind::relu;
  Shape state;
  if (c.op.inputs.size() > 1) {
    state = lstm && !c.op.inputs[1].list.empty() ? c.op.inputs[1].list.front() : c.op.inputs[1].shape;
  }
  if (state.size() != 3 || b.shape(c.in(0)).size() != 3) {
    b.fail("a recurrent layer without the shape of its state");
    return {};
  }
  options.hidden = state.back();
  options.bias = c.op.flag(3, true);
  options.layers = c.op.integer(4, 1);
  options.dropout = c.op.number(5, 0);
  options.bidirectional = c.op.flag(7, false);
  options.batch_first = c.op.flag(8, false);
  const int64_t directions = options.bidirectional ? 2 : 1;
  const int64_t gates = options.kind == RnnKind::lstm ? 4 : options.kind == RnnKind::gru ? 3 : 1;
  if (options.layers < 1 || options.layers > 1024) {
    b.fail("a recurrent layer of " + std::to_string(options.layers) + " layers");
    return {};
  }
  std::vector<TensorId> weights;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t width = layer == 0 ? b.extent(c.in(0), -1) : options.hidden * directions;
      const std::string suffix = std::to_string(layer) + (direction == 0 ? "" : "_reverse");
      weights.push_back(b.parameter("weight_ih_l" + suffix, {gates * options.hidden, width}));
      weights.push_back(b.parameter("weight_hh_l" + suffix, {gates * options.hidden, options.hidden}));
      if (!options.bias) continue;
      weights.push_back(b.parameter("bias_ih_l" + suffix, {gates * options.hidden}));
      weights.push_back(b.parameter("bias_hh_l" + suffix, {gates * options.hidden}));
    }
  }
  return {b.rnn(c.in(0), weights, options)};
}

Results softmax_call(ForwardBuilder& b, const TracedCall& c) { return {b.softmax(c.in(0), c.op.integer(1, -1))}; }
Results log_softmax_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.log_softmax(c.in(0), c.op.integer(1, -1))};
}
Shape reduced_dims(const ForwardBuilder& b, const TracedCall& c) {
  Shape dims = c.op.ints(1);
  if (dims.empty()) {
    for (size_t i = 0; i < b.shape(c.in(0)).size(); ++i) dims.push_back(static_cast<int64_t>(i));
  }
  return dims;
}
Results mean_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.mean(c.in(0), reduced_dims(b, c), c.op.flag(2, false))};
}
Results sum_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.sum(c.in(0), reduced_dims(b, c), c.op.flag(2, false))};
}

// --- shape
Results view_call(ForwardBuilder& b, const TracedCall& c) { return {b.view(c.in(0), sizes_of(b, c, 1))}; }
Results reshape_call(ForwardBuilder& b, const TracedCall& c) { return {b.reshape(c.in(0), sizes_of(b, c, 1))}; }
Results unflatten_call(ForwardBuilder& b, const TracedCall& c) {
  Shape sizes = b.shape(c.in(0));
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = c.op.integer(1, 0) < 0 ? c.op.integer(1, 0) + rank : c.op.integer(1, 0);
  if (dim < 0 || dim >= rank) {
    b.fail("unflatten of a dimension that is not there");
    return {};
  }
  const Shape inner = c.op.ints(2);
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, inner.begin(), inner.end());
  return {b.view(c.in(0), sizes)};
}
Results flatten_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.flatten(c.in(0), c.op.integer(1, 0), c.op.integer(2, -1))};
}
Results permute_call(ForwardBuilder& b, const TracedCall& c) { return {b.permute(c.in(0), c.op.ints(1))}; }
Results transpose_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.transpose(c.in(0), c.op.integer(1, 0), c.op.integer(2, 1))};
}
Results contiguous_call(ForwardBuilder& b, const TracedCall& c) { return {b.contiguous(c.in(0))}; }
Results unsqueeze_call(ForwardBuilder& b, const TracedCall& c) { return {b.unsqueeze(c.in(0), c.op.integer(1, 0))}; }
Results squeeze_call(ForwardBuilder& b, const TracedCall& c) { return {b.squeeze(c.in(0), c.op.integer(1, 0))}; }
Results expand_call(ForwardBuilder& b, const TracedCall& c) {
  Shape sizes = c.op.ints(1);
  const Shape from = b.shape(c.in(0));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t behind = sizes.size() - i;  // extents are matched from the last one
    const int64_t own = behind <= from.size() ? from[from.size() - behind] : 1;
    if (c.factor != 1 && sizes[i] == c.batch) sizes[i] = own == 1 ? grown(c, sizes[i]) : own;
  }
  return {b.expand(c.in(0), sizes)};
}
Results select_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.select(c.in(0), c.op.integer(1, 0), c.op.integer(2, 0))};
}
Results slice_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.slice(c.in(0), c.op.integer(1, 0), c.op.integer(2, 0), c.op.integer(3, INT64_MAX), c.op.integer(4, 1))};
}
Results split_call(ForwardBuilder& b, const TracedCall& c) {
  const Shape sizes = c.op.ints(1);
  if (!sizes.empty()) return b.split(c.in(0), sizes, c.op.integer(2, 0));
  return b.split_every(c.in(0), c.op.integer(1, 1), c.op.integer(2, 0));
}
Results chunk_call(ForwardBuilder& b, const TracedCall& c) {
  return b.chunk(c.in(0), c.op.integer(1, 2), c.op.integer(2, 0));
}
Results unbind_call(ForwardBuilder& b, const TracedCall& c) { return b.unbind(c.in(0), c.op.integer(1, 0)); }
Results cat_call(ForwardBuilder& b, const TracedCall& c) {
  std::vector<TensorId> parts;  // PyTorch passes over empty ones, whatever their rank
  for (const TensorId part : c.tensors[0]) {
    if (b.shape(part) != Shape{0}) parts.push_back(part);
  }
  return {b.cat(parts.empty() ? c.tensors[0] : parts, c.op.integer(1, 0))};
}
Results stack_call(ForwardBuilder& b, const TracedCall& c) { return {b.stack(c.tensors[0], c.op.integer(1, 0))}; }
Results roll_call(ForwardBuilder& b, const TracedCall& c) { return {b.roll(c.in(0), c.op.ints(1), c.op.ints(2))}; }
Results pad_call(ForwardBuilder& b, const TracedCall& c) { return {b.pad(c.in(0), c.op.ints(1))}; }

// --- indexing and elementwise
Results gather_call(ForwardBuilder& b, const TracedCall& c) { return {b.gather(c.in(0), c.op.integer(1, 0), c.in(2))}; }
Results where_call(ForwardBuilder& b, const TracedCall& c) {
  if (c.has(1) && c.has(2)) return {b.where(c.in(0), c.in(1), c.in(2))};
  const TensorId like = c.has(1) && b.shape(c.in(1)).size() >= b.shape(c.in(0)).size() ? c.in(1) : c.in(0);
  return b.opaque("aten.where.ScalarOther", {c.in(0)}, {{b.shape(like), DType::float32}});
}
// The shape that a later call told, for the batch that is asked for.
std::optional<Shape> told_shape(const ForwardBuilder& b, const TracedCall& c) {
  if (!c.told) return std::nullopt;
  Shape shape = *c.told;
  int64_t elements = 1;
  for (const int64_t extent : b.shape(c.in(0))) elements *= extent;
  if (c.factor == 1 || c.batch <= 0 || elements == c.op.elements(0)) return shape;
  auto found = std::find(shape.begin(), shape.end(), c.batch);
  if (found == shape.end() && !shape.empty() && shape.front() % c.batch == 0) found = shape.begin();
  if (found != shape.end()) *found = grown(c, *found);
  return shape;
}
// One list of indices in the first dimension, as far as the result tells them.
Results index_call(ForwardBuilder& b, const TracedCall& c) {
  const Shape from = b.shape(c.in(0));
  if (c.has(1) && c.tensors[1].size() == 1 && !from.empty()) {
    Shape result = b.shape(c.in(1));
    result.insert(result.end(), from.begin() + 1, from.end());
    return {b.index(c.in(0), c.tensors[1], result)};
  }
  const Shape result = told_shape(b, c).value_or(from);
  return {b.index(c.in(0), {b.buffer("index", {result.empty() ? 1 : result.front()}, DType::int64)}, result)};
}
Results expand_as_call(ForwardBuilder& b, const TracedCall& c) { return {b.expand(c.in(0), b.shape(c.in(1)))}; }
Results matrix_transpose_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.shape(c.in(0)).size() < 2 ? c.in(0) : b.transpose(c.in(0), 0, 1)};
}
Results constant_call(ForwardBuilder& b, const TracedCall& c) {
  const Shape sizes = c.op.name.find("_like") == std::string::npos ? c.op.ints(1) : b.shape(c.in(0));
  return {b.create("aten.zeros.default", sizes, b.dtype(c.in(0)))};
}
Results gelu_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.gelu(c.in(0), c.op.values.size() > 1 && c.op.values[1] == "tanh")};
}
Results pow_call(ForwardBuilder& b, const TracedCall& c) {
  return {b.unary("aten.pow.Tensor_Scalar", c.in(0), {{"exponent", c.op.number(1, 2)}})};
}

// A cast to a type by its number in PyTorch; anything else that `to` does copies nothing here.
Results to_call(ForwardBuilder& b, const TracedCall& c) {
  constexpr std::array<std::pair<int64_t, DType>, 5> kTypes = {
      {{6, DType::float32}, {15, DType::bfloat16}, {5, DType::float16}, {4, DType::int64}, {11, DType::boolean}}};
  const int64_t number = c.op.integer(1, -1);
  for (const auto& [code, dtype] : kTypes) {
    // A cast to the type that a tensor has does nothing in float32, and something under autocast.
    if (code == number && (is_floating(dtype) || b.dtype(c.in(0)) != dtype)) return {b.to_dtype(c.in(0), dtype)};
  }
  return {c.in(0)};
}
Results same_call(ForwardBuilder&, const TracedCall& c) { return {c.in(0)}; }

// add, sub, mul, div: of two tensors, or of one and a number (which traces record as a tensor without dimensions).
Results arithmetic_call(ForwardBuilder& b, const TracedCall& c) {
  const std::string name = "aten." + c.op.name.substr(6) + ".Tensor";
  const bool number = !c.has(1) || (b.shape(c.in(1)).empty() && !b.shape(c.in(0)).empty()) || c.in(0) == c.in(1);
  if (number) return {b.unary(name, c.in(0), {{"other", 1.0}})};
  return {b.binary(name, c.in(0), c.in(1))};
}

struct CallRow {
  std::string_view name;
  EmitCall emit;
};

constexpr std::array kCalls = {
    CallRow{"conv2d", conv2d},
    CallRow{"convolution", conv2d},
    CallRow{"conv_transpose2d", conv_transpose2d},
    CallRow{"linear", linear_call},
    CallRow{"addmm", addmm_call},
    CallRow{"matmul", matmul_call},
    CallRow{"mm", matmul_call},
    CallRow{"bmm", bmm_call},
    CallRow{"batch_norm", batch_norm_call},
    CallRow{"layer_norm", layer_norm_call},
    CallRow{"group_norm", group_norm_call},
    CallRow{"embedding", embedding_call},
    CallRow{"max_pool2d", max_pool_call},
    CallRow{"avg_pool2d", avg_pool_call},
    CallRow{"adaptive_avg_pool2d", adaptive_pool_call},
    CallRow{"dropout", dropout_call},
    CallRow{"dropout_", dropout_call},
    CallRow{"scaled_dot_product_attention", attention_call},
    CallRow{"lstm", recurrent_call},
    CallRow{"gru", recurrent_call},
    CallRow{"rnn_tanh", recurrent_call},
    CallRow{"rnn_relu", recurrent_call},
    CallRow{"softmax", softmax_call},
    CallRow{"log_softmax", log_softmax_call},
    CallRow{"mean", mean_call},
    CallRow{"sum", sum_call},
    CallRow{"view", view_call},
    CallRow{"reshape", reshape_call},
    CallRow{"unflatten", unflatten_call},
    CallRow{"flatten", flatten_call},
    CallRow{"permute", permute_call},
    CallRow{"transpose", transpose_call},
    CallRow{"contiguous", contiguous_call},
    CallRow{"unsqueeze", unsqueeze_call},
    CallRow{"squeeze", squeeze_call},
    CallRow{"expand", expand_call},
    CallRow{"select", select_call},
    CallRow{"slice", slice_call},
    CallRow{"split", split_call},
    CallRow{"split_with_sizes", split_call},
    CallRow{"chunk", chunk_call},
    CallRow{"unbind", unbind_call},
    CallRow{"cat", cat_call},
    CallRow{"concat", cat_call},
    CallRow{"stack", stack_call},
    CallRow{"roll", roll_call},
    CallRow{"pad", pad_call},
    CallRow{"constant_pad_nd", pad_call},
    CallRow{"gather", gather_call},
    CallRow{"where", where_call},
    CallRow{"gelu", gelu_call},
    CallRow{"pow", pow_call},
    CallRow{"to", to_call},
    CallRow{"type_as", same_call},
    CallRow{"detach", same_call},
    CallRow{"detach_", same_call},
    CallRow{"lift_fresh", same_call},
    CallRow{"alias", same_call},
    CallRow{"index", index_call},
    CallRow{"expand_as", expand_as_call},
    CallRow{"t", matrix_transpose_call},
    CallRow{"swapaxes", transpose_call},
    CallRow{"swapdims", transpose_call},
    CallRow{"new_zeros", constant_call},
    CallRow{"new_ones", constant_call},
    CallRow{"new_full", constant_call},
    CallRow{"new_empty", constant_call},
    CallRow{"zeros_like", constant_call},
    CallRow{"ones_like", constant_call},
    CallRow{"full_like", constant_call},
    CallRow{"empty_like", constant_call},
    CallRow{"add", arithmetic_call},
    CallRow{"add_", arithmetic_call},
    CallRow{"sub", arithmetic_call},
    CallRow{"mul", arithmetic_call},
    CallRow{"mul_", arithmetic_call},
    CallRow{"div", arithmetic_call},
};

// Elementwise ops of one tensor that keep its shape and need no more than their name.
constexpr std::array<std::string_view, 27> kUnary = {
    "relu",      "relu_",      "relu6",       "relu6_",     "sigmoid",     "sigmoid_",     "tanh",
    "silu",      "silu_",      "hardswish",   "hardswish_", "hardsigmoid", "hardsigmoid_", "hardtanh",
    "hardtanh_", "leaky_relu", "leaky_relu_", "elu",        "mish",        "softplus",     "exp",
    "log",       "sqrt",       "rsqrt",       "neg",        "cos",         "sin"};

}  // namespace

TensorId TracedCall::in(size_t argument) const {
  if (has(argument)) return tensors[argument].front();
  for (const auto& other : tensors) {
    if (!other.empty()) return other.front();
  }
  CHECK(false, "a call without tensors is not told to a builder");
  return {};
}

ArgumentRole role_of(const std::string& op, size_t argument) {
  const std::string base = op.starts_with("aten::") ? op.substr(6) : op;
  const bool layer = base.starts_with("conv") || base == "linear";
  if (layer && (argument == 1 || argument == 2)) return ArgumentRole::parameter;
  if (base == "embedding" && argument == 0) return ArgumentRole::parameter;
  if (base == "layer_norm" && (argument == 2 || argument == 3)) return ArgumentRole::parameter;
  if (base == "group_norm" && (argument == 2 || argument == 3)) return ArgumentRole::parameter;
  if (base == "addmm" && (argument == 0 || argument == 2)) return ArgumentRole::parameter;
  if (base == "batch_norm" && (argument == 1 || argument == 2)) return ArgumentRole::parameter;
  if (base == "batch_norm" && (argument == 3 || argument == 4)) return ArgumentRole::buffer;
  return ArgumentRole::value;
}

bool in_place(const std::string& op) { return op.ends_with("_") && !op.ends_with("__"); }

namespace {

std::string base_name(const std::string& op) { return op.starts_with("aten::") ? op.substr(6) : op; }

const CallRow* row_of(const std::string& base) {
  const auto* found = std::find_if(kCalls.begin(), kCalls.end(), [&](const CallRow& row) { return row.name == base; });
  return found == kCalls.end() ? nullptr : found;
}

bool is_unary(const std::string& base) { return std::find(kUnary.begin(), kUnary.end(), base) != kUnary.end(); }

}  // namespace

bool result_unknown(const std::string& op) {
  const std::string base = base_name(op);
  return base == "index" || (row_of(base) == nullptr && !is_unary(base) && !in_place(op));
}

bool makes_constant(const std::string& op) {
  const CallRow* row = row_of(base_name(op));
  return row != nullptr && row->emit == constant_call;
}

std::vector<TensorId> emit_call(ForwardBuilder& builder, const TracedCall& call) {
  const std::string base = base_name(call.op.name);
  size_t tensors = 0;
  for (const auto& argument : call.tensors) tensors += argument.size();
  if (tensors == 0) return {};  // makes something of nothing: a root where it is used
  if (const CallRow* row = row_of(base)) {
    if (!call.has(0)) {
      builder.fail(call.op.name + " without its first tensor");
      return {};
    }
    return row->emit(builder, call);
  }
  const TensorId first = call.in(0);
  if (is_unary(base) || (in_place(call.op.name) && tensors == 1)) {
    return {builder.unary("aten." + base + ".default", first)};
  }
  if (in_place(call.op.name)) return {first};
  std::vector<TensorId> inputs;
  for (const auto& argument : call.tensors) inputs.insert(inputs.end(), argument.begin(), argument.end());
  const Shape shape = told_shape(builder, call).value_or(builder.shape(first));
  return builder.opaque("aten." + base + ".default", inputs, {{shape, builder.dtype(first)}});
}

}  // namespace forerun::whatif
