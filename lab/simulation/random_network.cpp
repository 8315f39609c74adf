#include "lab/simulation/random_network.h"

#include <fmt/format.h>

#include "zoo/attention_layers.h"
#include "zoo/conv_blocks.h"

namespace forerun::simulation {
namespace {

using Scope = ForwardBuilder::Scope;
using zoo::Activation;
using zoo::BatchNorm;
using zoo::Conv2d;
using zoo::Conv2dOptions;
using zoo::LayerNorm;
using zoo::Linear;

enum class Norm : uint8_t { none, batch, group };
enum class BlockKind : uint8_t { plain, residual, bottleneck, inverted, dense, branches, cell };

// The tastes of one network: what its blocks share.
struct ImageStyle {
  Norm norm = Norm::batch;
  Activation activation = Activation::relu_;
  bool mixed = false;  // each block of a kind of its own
  BlockKind kind = BlockKind::plain;
  int64_t group_width = 0;  // of grouped convolutions; 0: not grouped
  double squeeze = 0;       // chance of squeeze and excitation in a block
};

class ImageNetwork {
 public:
  ImageNetwork(ForwardBuilder& builder, Drawing& drawing) : b_(builder), draw_(drawing) {
    style_ = {.norm = draw_.weighted<Norm>({{Norm::batch, 0.65}, {Norm::group, 0.08}, {Norm::none, 0.27}}),
              .activation = draw_.weighted<Activation>({{Activation::relu_, 0.5},
                                                        {Activation::relu, 0.1},
                                                        {Activation::silu_, 0.15},
                                                        {Activation::hardswish_, 0.1},
                                                        {Activation::relu6_, 0.15}}),
              .mixed = draw_.chance(0.4),
              .kind = any_kind(),
              .group_width = draw_.chance(0.3) ? draw_.one_of<int64_t>({1, 4, 8, 16, 24, 32, 64}) : 0,
              .squeeze = draw_.chance(0.3) ? draw_.uniform(0.2, 1) : 0};
  }

  void build(int64_t batch, int64_t channels, int64_t size, int64_t classes) {
    TensorId x = b_.input("image", {batch, channels, size, size});
    int64_t width = draw_.log_multiple(8, 96, 8);
    x = layer("stem", x, width, {.kernel = draw_.one_of<int64_t>({3, 3, 5, 7}), .stride = draw_.chance(0.8) ? 2 : 1});
    if (draw_.chance(0.5)) x = zoo::max_pool(b_, "stem_pool", x, zoo::pooling(3, 2, 1));
    const int64_t stages = draw_.integer(2, 5);
    const int64_t deepest = draw_.log_integer(1, 12);
    for (int64_t stage = 0; stage < stages && b_.extent(x, 2) >= 4; ++stage) {
      const Scope scope(b_, fmt::format("stage{}", stage));
      x = down("down", x, width);
      const int64_t depth = draw_.integer(1, deepest);
      for (int64_t i = 0; i < depth; ++i) x = block(fmt::format("{}", i), x, width);
      width = b_.extent(x, 1);
      width = draw_.chance(0.8) ? 2 * width : width + 8 * draw_.integer(1, 16);
      width = std::min<int64_t>(width, 2048);
    }
    head(x, classes);
  }

 private:
  BlockKind any_kind() {
    return draw_.one_of({BlockKind::plain, BlockKind::residual, BlockKind::bottleneck, BlockKind::inverted,
                         BlockKind::dense, BlockKind::branches, BlockKind::cell});
  }

  // Convolution that keeps the size (but for its stride), norm and activation of the network's style.
  TensorId layer(const std::string& name, TensorId x, int64_t out, Conv2dOptions options, bool activated = true) {
    const Scope scope(b_, name);
    options.padding = options.kernel / 2;
    options.bias = style_.norm == Norm::none;
    const int64_t in = b_.extent(x, 1);
    if (in % options.groups != 0 || out % options.groups != 0) options.groups = 1;
    x = normed(Conv2d(b_, "conv", in, out, options)(x));
    return activated ? activate(x) : x;
  }

  TensorId normed(TensorId x) {
    const int64_t features = b_.extent(x, 1);
    if (style_.norm == Norm::batch) return BatchNorm(b_, "norm", features)(x);
    if (style_.norm == Norm::none || features % 8 != 0) return x;
    const Scope scope(b_, "norm");
    const TensorId weight = b_.parameter("weight", {features});
    return b_.group_norm(x, weight, b_.parameter("bias", {features}), features % 32 == 0 ? 32 : 8);
  }

  TensorId activate(TensorId x) { return zoo::activate(b_, "act", style_.activation, x); }

  int64_t groups_of(int64_t channels) const {
    return style_.group_width > 0 && channels % style_.group_width == 0 ? channels / style_.group_width : 1;
  }

  TensorId down(const std::string& name, TensorId x, int64_t out) {
    if (draw_.chance(0.5)) return layer(name, x, out, {.kernel = draw_.one_of<int64_t>({2, 3, 3}), .stride = 2});
    x = layer(name, x, out, {.kernel = 1});
    return draw_.chance(0.5) ? zoo::max_pool(b_, "pool", x, zoo::pooling(2, 2))
                             : b_.avg_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}});
  }

  TensorId block(const std::string& name, TensorId x, int64_t width) {
    const Scope scope(b_, name);
    const BlockKind kind = style_.mixed ? any_kind() : style_.kind;
    const TensorId y = block_of(kind, x, width);
    return draw_.chance(style_.squeeze) ? squeezed(y) : y;
  }

  TensorId squeezed(TensorId x) {
    return zoo::squeeze_excitation(b_, "se", x,
                                   std::max<int64_t>(8, b_.extent(x, 1) / draw_.one_of<int64_t>({4, 8, 16})),
                                   Activation::relu, Activation::sigmoid);
  }

  TensorId block_of(BlockKind kind, TensorId x, int64_t width) {
    switch (kind) {
      case BlockKind::plain: return layer("0", x, b_.extent(x, 1), {.kernel = draw_.one_of<int64_t>({1, 3, 3, 5})});
      case BlockKind::residual: return residual(x);
      case BlockKind::bottleneck: return bottleneck(x);
      case BlockKind::inverted: return inverted(x);
      case BlockKind::dense: return dense(x, width);
      case BlockKind::branches: return branches(x);
      case BlockKind::cell: return cell(x);
    }
    return x;
  }

  TensorId joined(TensorId x, TensorId identity) { return activate(b_.add(x, identity)); }

  TensorId residual(TensorId x) {
    const int64_t width = b_.extent(x, 1);
    const TensorId y = layer("0", x, width, {.kernel = 3, .groups = groups_of(width)});
    return joined(layer("1", y, width, {.kernel = 3}, false), x);
  }

  TensorId bottleneck(TensorId x) {
    const int64_t width = b_.extent(x, 1);
    const int64_t inner = std::max<int64_t>(8, width / draw_.one_of<int64_t>({1, 2, 4}) / 8 * 8);
    TensorId y = layer("0", x, inner, {.kernel = 1});
    y = layer("1", y, inner, {.kernel = draw_.one_of<int64_t>({3, 3, 5}), .groups = groups_of(inner)});
    return joined(layer("2", y, width, {.kernel = 1}, false), x);
  }

  TensorId inverted(TensorId x) {
    const int64_t width = b_.extent(x, 1);
    const int64_t inner = width * draw_.one_of<int64_t>({2, 3, 4, 6});
    TensorId y = layer("0", x, inner, {.kernel = 1});
    y = layer("1", y, inner, {.kernel = draw_.one_of<int64_t>({3, 5, 7}), .groups = inner});
    return b_.add(layer("2", y, width, {.kernel = 1}, false), x);
  }

  TensorId dense(TensorId x, int64_t width) {
    const int64_t growth = std::max<int64_t>(8, width / draw_.one_of<int64_t>({2, 4, 8}) / 8 * 8);
    if (b_.extent(x, 1) > 8 * width) x = layer("squeeze", x, width, {.kernel = 1});
    const TensorId y = layer("0", x, 4 * growth, {.kernel = 1});
    return b_.cat({x, layer("1", y, growth, {.kernel = 3})}, 1);
  }

  TensorId branches(TensorId x) {
    const int64_t width = b_.extent(x, 1);
    const int64_t count = draw_.integer(2, 5);
    std::vector<TensorId> parts;
    for (int64_t i = 0; i < count; ++i) {
      const Scope scope(b_, fmt::format("branch{}", i));
      const int64_t out = std::max<int64_t>(8, width / count / 8 * 8);
      TensorId y = x;
      const int64_t kind = draw_.integer(0, 3);
      if (kind == 0) y = b_.avg_pool2d(y, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
      if (kind >= 2) y = layer("reduce", y, std::max<int64_t>(8, out / 2), {.kernel = 1});
      const int64_t layers = kind == 3 ? 2 : 1;
      for (int64_t k = 0; k < layers; ++k) {
        y = layer(fmt::format("{}", k), y, out, {.kernel = kind == 0 ? 1 : draw_.one_of<int64_t>({1, 3, 5})});
      }
      parts.push_back(y);
    }
    return b_.cat(parts, 1);
  }

  // Nodes that each add up two earlier ones, passed through an op of their own; the last ones are joined.
  TensorId cell(TensorId x) {
    const int64_t width = b_.extent(x, 1);
    std::vector<TensorId> nodes = {x, layer("in", x, width, {.kernel = 1})};
    const int64_t count = draw_.integer(2, 6);
    for (int64_t i = 0; i < count; ++i) {
      const Scope scope(b_, fmt::format("node{}", i));
      const TensorId left = cell_op("left", draw_.one_of(nodes), width);
      nodes.push_back(b_.add(left, cell_op("right", draw_.one_of(nodes), width)));
    }
    return draw_.chance(0.5) ? nodes.back()
                             : layer("out", b_.cat({nodes.back(), nodes[nodes.size() - 2]}, 1), width, {.kernel = 1});
  }

  TensorId cell_op(const std::string& name, TensorId x, int64_t width) {
    switch (draw_.integer(0, 5)) {
      case 0: return x;
      case 1: return layer(name, x, width, {.kernel = 1});
      case 2: return layer(name, x, width, {.kernel = 3});
      case 3: return layer(name, x, width, {.kernel = draw_.one_of<int64_t>({3, 5}), .groups = width});
      case 4: return zoo::max_pool(b_, name, x, zoo::pooling(3, 1, 1));
      default: return b_.avg_pool2d(x, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
    }
  }

  void head(TensorId x, int64_t classes) {
    if (draw_.chance(0.2)) return convolutional_head(x, classes);
    x = flattened(x);
    const int64_t hidden = draw_.chance(0.7) ? 0 : draw_.integer(1, 2);
    for (int64_t i = 0; i < hidden; ++i) {
      x = Linear(b_, fmt::format("hidden{}", i), b_.extent(x, 1), draw_.log_multiple(128, 4096, 128))(x);
      x = zoo::activate(b_, fmt::format("act{}", i), Activation::relu, x);
      if (draw_.chance(0.5)) x = zoo::Dropout(b_, fmt::format("drop{}", i), 0.5)(x);
    }
    b_.result(Linear(b_, "head", b_.extent(x, 1), classes)(x));
  }

  TensorId flattened(TensorId x) {
    const double kind = draw_.uniform();
    if (kind < 0.5) return b_.flatten(zoo::global_pool(b_, "pool", x), 1);
    if (kind < 0.85) return b_.mean(x, {2, 3}, false);
    const int64_t cells = b_.extent(x, 1) * b_.extent(x, 2) * b_.extent(x, 3);
    return b_.flatten(cells <= 32'768 ? x : zoo::global_pool(b_, "pool", x), 1);
  }

  // Classes as channels, averaged last.
  void convolutional_head(TensorId x, int64_t classes) {
    if (draw_.chance(0.5)) x = zoo::Dropout(b_, "drop", 0.5)(x);
    x = Conv2d(b_, "head", b_.extent(x, 1), classes, {.kernel = 1, .bias = true})(x);
    if (draw_.chance(0.5)) x = activate(x);
    b_.result(b_.flatten(zoo::global_pool(b_, "pool", x), 1));
  }

  ForwardBuilder& b_;
  Drawing& draw_;
  ImageStyle style_;
};

class TokenNetwork {
 public:
  TokenNetwork(ForwardBuilder& builder, Drawing& drawing) : b_(builder), draw_(drawing) {}

  void build(int64_t batch, int64_t length, int64_t vocabulary) {
    const auto head = draw_.one_of<int64_t>({32, 64, 64, 128});
    heads_ = draw_.log_integer(1, 16);
    width_ = heads_ * head;
    dropout_ = draw_.chance(0.5) ? 0.1 : 0;
    const TensorId tokens = b_.input("tokens", {batch, length}, DType::int64);
    TensorId x = zoo::Embedding(b_, "embedding", vocabulary, width_)(tokens);
    const bool mixed = draw_.chance(0.5);
    const int64_t kind = draw_.integer(0, 3);
    const int64_t depth = draw_.log_integer(1, 24);
    for (int64_t i = 0; i < depth; ++i) {
      const Scope scope(b_, fmt::format("block{}", i));
      x = mixer(mixed ? draw_.integer(0, 3) : kind, x);
      if (draw_.chance(0.8)) x = b_.add(x, feed_forward(normed("norm_mlp", x)));
    }
    b_.result(Linear(b_, "head", width_, vocabulary, draw_.chance(0.5))(normed("norm", x)));
  }

 private:
  TensorId normed(const std::string& name, TensorId x) { return LayerNorm(b_, name, width_)(x); }

  TensorId mixer(int64_t kind, TensorId x) {
    const TensorId y = normed("norm_mixer", x);
    if (kind == 0) {
      return b_.add(x, zoo::MultiheadAttention(b_, "attention", width_, heads_,
                                               {.dropout = dropout_, .causal = draw_.chance(0.5)})
                           .self(y));
    }
    if (kind == 1) return b_.add(x, separate_attention(y));
    if (kind == 2) return b_.add(x, recurrent(y));
    return b_.mul(x, b_.unary("aten.sigmoid.default", Linear(b_, "gate", width_, width_)(y)));
  }

  TensorId recurrent(TensorId x) {
    const auto kind = draw_.one_of<RnnKind>({RnnKind::lstm, RnnKind::lstm, RnnKind::gru, RnnKind::gru, RnnKind::tanh});
    return zoo::Rnn(b_, "recurrent", width_, {.kind = kind, .hidden = width_, .layers = draw_.log_integer(1, 4)})(x);
  }

  // Projections of their own, as transformers has them.
  TensorId separate_attention(TensorId x) {
    const Scope scope(b_, "attention");
    const int64_t head = width_ / heads_;
    const TensorId query = zoo::split_heads(b_, Linear(b_, "query", width_, width_)(x), head);
    const TensorId key = zoo::split_heads(b_, Linear(b_, "key", width_, width_)(x), head);
    const TensorId value = zoo::split_heads(b_, Linear(b_, "value", width_, width_)(x), head);
    const TensorId mixed = b_.attention(query, key, value, {.dropout = dropout_, .causal = draw_.chance(0.7)});
    return Linear(b_, "out", width_, width_)(zoo::merge_heads(b_, mixed));
  }

  TensorId feed_forward(TensorId x) {
    const Scope scope(b_, "mlp");
    const int64_t inner = width_ * draw_.one_of<int64_t>({1, 2, 4, 4});
    TensorId y = Linear(b_, "up", width_, inner)(x);
    const bool gated = draw_.chance(0.3);
    if (gated) {
      y = b_.mul(b_.unary("aten.silu.default", y), Linear(b_, "gate", width_, inner, false)(x));
    } else {
      y = draw_.chance(0.6) ? b_.gelu(y) : b_.relu(y);
    }
    y = Linear(b_, "down", inner, width_)(y);
    return dropout_ > 0 ? b_.dropout(y, dropout_) : y;
  }

  ForwardBuilder& b_;
  Drawing& draw_;
  int64_t heads_ = 1;
  int64_t width_ = 64;
  double dropout_ = 0;
};

Result<zoo::Model> finished(ForwardBuilder& builder, InputSpec input) {
  Result<Graph> forward = builder.finish();
  if (!forward) return forward.error().within("a random network");
  return zoo::Model{"random", {}, std::move(input), *std::move(forward)};
}

}  // namespace

Result<zoo::Model> random_image_network(int64_t batch, int64_t size, Drawing& drawing) {
  const InputSpec input{.kind = InputKind::image,
                        .batch = batch,
                        .channels = drawing.chance(0.9) ? 3 : 1,
                        .size = size,
                        .classes = drawing.one_of<int64_t>({10, 100, 1000, 1000})};
  ForwardBuilder builder;
  ImageNetwork(builder, drawing).build(input.batch, input.channels, input.size, input.classes);
  return finished(builder, input);
}

Result<zoo::Model> random_token_network(int64_t batch, Drawing& drawing) {
  const InputSpec input{.kind = InputKind::tokens,
                        .batch = batch,
                        .size = 8 * drawing.log_integer(4, 128),
                        .classes = drawing.log_integer(1000, 50000),
                        .flavour = "lm"};
  ForwardBuilder builder;
  TokenNetwork(builder, drawing).build(input.batch, input.size, input.classes);
  return finished(builder, input);
}

}  // namespace forerun::simulation
