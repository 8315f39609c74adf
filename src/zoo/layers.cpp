#include "zoo/layers.h"

#include <fmt/format.h>

#include <algorithm>

namespace forerun::zoo {

using Scope = ForwardBuilder::Scope;

Conv2d::Conv2d(ForwardBuilder& b, std::string_view name, int64_t in, int64_t out, const Conv2dOptions& options)
    : b_(b), path_(b.path_of(name)) {
  const Scope scope(b, name);
  const int64_t kernel_w = options.kernel_w > 0 ? options.kernel_w : options.kernel;
  if (options.groups < 1 || in % options.groups != 0 || out % options.groups != 0) {
    b.fail(fmt::format("{} groups do not divide {} and {} channels", options.groups, in, out),
           "choose widths that are multiples of the groups");
  }
  weight_ = b.parameter("weight", {out, in / std::max<int64_t>(options.groups, 1), options.kernel, kernel_w});
  if (options.bias) bias_ = b.parameter("bias", {out});
  const int64_t padding_w = options.padding_w >= 0 ? options.padding_w : options.padding;
  options_ = {.stride = {options.stride, options.stride},
              .padding = {options.padding, padding_w},
              .dilation = {options.dilation, options.dilation},
              .groups = options.groups};
}

TensorId Conv2d::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  return b_.conv(x, weight_, bias_, options_);
}

BatchNorm::BatchNorm(ForwardBuilder& b, std::string_view name, int64_t features, double eps, double momentum)
    : b_(b), path_(b.path_of(name)), eps_(eps), momentum_(momentum) {
  const Scope scope(b, name);
  weight_ = b.parameter("weight", {features});
  bias_ = b.parameter("bias", {features});
  mean_ = b.buffer("running_mean", {features});
  variance_ = b.buffer("running_var", {features});
  tracked_ = b.buffer("num_batches_tracked", {}, DType::int64);
}

TensorId BatchNorm::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  return b_.batch_norm(x, weight_, bias_, mean_, variance_, tracked_, momentum_, eps_);
}

Linear::Linear(ForwardBuilder& b, std::string_view name, int64_t in, int64_t out, bool bias)
    : b_(b), path_(b.path_of(name)) {
  const Scope scope(b, name);
  weight_ = b.parameter("weight", {out, in});
  if (bias) bias_ = b.parameter("bias", {out});
}

TensorId Linear::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  return b_.linear(x, weight_, bias_);
}

LayerNorm::LayerNorm(ForwardBuilder& b, std::string_view name, int64_t features, double eps, bool bias)
    : b_(b), path_(b.path_of(name)), normalized_{features}, eps_(eps) {
  const Scope scope(b, name);
  weight_ = b.parameter("weight", normalized_);
  if (bias) bias_ = b.parameter("bias", normalized_);
}

TensorId LayerNorm::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  return b_.layer_norm(x, weight_, bias_, normalized_, eps_);
}

Embedding::Embedding(ForwardBuilder& b, std::string_view name, int64_t count, int64_t width, int64_t padding_index)
    : b_(b), path_(b.path_of(name)), padding_index_(padding_index) {
  const Scope scope(b, name);
  weight_ = b.parameter("weight", {count, width});
}

TensorId Embedding::operator()(TensorId indices) const {
  const Scope scope(b_, path_, Scope::absolute);
  return b_.embedding(weight_, indices, padding_index_);
}

TensorId Dropout::operator()(TensorId x) const {
  if (p_ == 0) return x;  // nothing is dispatched
  const Scope scope(b_, path_, Scope::absolute);
  return b_.dropout(x, p_);
}

MultiheadAttention::MultiheadAttention(ForwardBuilder& b, std::string_view name, int64_t width, int64_t heads,
                                       const MultiheadOptions& options)
    : b_(b), path_(b.path_of(name)), width_(width), heads_(heads), options_(options) {
  const Scope scope(b, name);
  if (heads < 1 || width % heads != 0) {
    b.fail(fmt::format("{} heads do not divide a width of {}", heads, width), "choose heads that divide the width");
    heads_ = 1;
  }
  in_weight_ = b.parameter("in_proj_weight", {3 * width, width});
  in_bias_ = b.parameter("in_proj_bias", {3 * width});
  const Scope out(b, "out_proj");
  out_weight_ = b.parameter("weight", {width, width});
  out_bias_ = b.parameter("bias", {width});
}

namespace {

// Splits the last dimension of a packed projection into `parts` tensors that are contiguous together.
std::vector<TensorId> unpack(ForwardBuilder& b, TensorId packed, int64_t parts, int64_t width) {
  Shape size = b.shape(packed);
  if (!size.empty()) size.back() = parts;
  size.push_back(width);
  TensorId x = b.view(packed, size);
  x = b.unsqueeze(x, 0);
  x = b.transpose(x, 0, -2);
  x = b.squeeze(x, -2);
  x = b.contiguous(x);
  std::vector<TensorId> result;
  for (int64_t i = 0; i < parts; ++i) result.push_back(b.select(x, 0, i));
  return result;
}

}  // namespace

TensorId MultiheadAttention::run(TensorId query, TensorId memory) const {
  const Scope scope(b_, path_, Scope::absolute);
  const bool same = query == memory;
  if (options_.batch_first) {
    query = b_.transpose(query, 1, 0);
    memory = same ? query : b_.transpose(memory, 1, 0);
  }
  const int64_t length = b_.extent(query, 0);
  const int64_t batch = b_.extent(query, 1);
  const int64_t memory_length = b_.extent(memory, 0);
  std::vector<TensorId> qkv;
  if (same) {
    qkv = unpack(b_, b_.linear(query, in_weight_, in_bias_), 3, width_);
  } else {
    const auto weights = b_.split(in_weight_, {width_, 2 * width_}, 0);
    const auto biases = b_.split(in_bias_, {width_, 2 * width_}, 0);
    qkv = {b_.linear(query, weights[0], biases[0])};
    for (const TensorId part : unpack(b_, b_.linear(memory, weights[1], biases[1]), 2, width_)) qkv.push_back(part);
  }
  const int64_t head = width_ / heads_;
  const int64_t lengths[3] = {length, memory_length, memory_length};
  for (size_t i = 0; i < 3; ++i) {
    qkv[i] = b_.transpose(b_.view(qkv[i], {lengths[i], batch * heads_, head}), 0, 1);
  }
  for (size_t i = 0; i < 3; ++i) qkv[i] = b_.view(qkv[i], {batch, heads_, lengths[i], head});
  TensorId x = b_.attention(qkv[0], qkv[1], qkv[2], {.dropout = options_.dropout, .causal = options_.causal});
  x = b_.view(b_.contiguous(b_.permute(x, {2, 0, 1, 3})), {batch * length, width_});
  x = b_.linear(x, out_weight_, out_bias_);
  x = b_.view(x, {length, batch, width_});
  return options_.batch_first ? b_.transpose(x, 1, 0) : x;
}

Rnn::Rnn(ForwardBuilder& b, std::string_view name, int64_t in, const RnnOptions& options)
    : b_(b), path_(b.path_of(name)), options_(options) {
  const Scope scope(b, name);
  const int64_t gates = options.kind == RnnKind::lstm ? 4 : options.kind == RnnKind::gru ? 3 : 1;
  const int64_t directions = options.bidirectional ? 2 : 1;
  int64_t width = in;
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = fmt::format("l{}{}", layer, direction == 1 ? "_reverse" : "");
      weights_.push_back(b.parameter("weight_ih_" + suffix, {gates * options.hidden, width}));
      weights_.push_back(b.parameter("weight_hh_" + suffix, {gates * options.hidden, options.hidden}));
      if (options.bias) {
        weights_.push_back(b.parameter("bias_ih_" + suffix, {gates * options.hidden}));
        weights_.push_back(b.parameter("bias_hh_" + suffix, {gates * options.hidden}));
      }
    }
    width = options.hidden * directions;
  }
}

TensorId Rnn::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  return b_.rnn(x, weights_, options_);
}

int64_t make_divisible(double value, int64_t divisor) {
  const auto rounded = static_cast<int64_t>(value + static_cast<double>(divisor) / 2) / divisor * divisor;
  const int64_t result = std::max(divisor, rounded);
  return static_cast<double>(result) < 0.9 * value ? result + divisor : result;
}

}  // namespace forerun::zoo
