// T5: encoder and decoder with relative position biases, RMS norms and one embedding for both sides and the head.
//
// Source: T5ForConditionalGeneration of transformers 5.22; eager attention as 5.17 has it. Both sides read the same tokens,
// no padding mask is given. The position biases are a mask that is trained: one attention op takes them with a copy.
// Left out: the key-value cache (use_cache=False).
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct T5Sizes {
  int64_t model;
  int64_t key;  // width of one head
  int64_t feed_forward;
  int64_t heads;
  int64_t buckets;
  int64_t max_distance;
  double dropout;
  bool eager;
  bool gated;
  std::string activation;
};

// The bucket of each pair of positions: [length, length] int64.
TensorId position_buckets(ForwardBuilder& b, int64_t length, const T5Sizes& s, bool bidirectional) {
  const int64_t buckets = bidirectional ? s.buckets / 2 : s.buckets;
  const int64_t exact = buckets / 2;
  TensorId context = b.unsqueeze(arange(b, length), 1);
  context = b.unary("aten.add.Tensor", context, {{"other", int64_t{0}}});
  const TensorId memory = b.unsqueeze(arange(b, length), 0);
  TensorId distance = b.binary("aten.sub.Tensor", memory, context);
  std::optional<TensorId> result;
  if (bidirectional) {
    const TensorId later = b.to_dtype(b.unary("aten.gt.Scalar", distance, {{"other", int64_t{0}}}), DType::int64);
    result = b.unary("aten.mul.Tensor", later, {{"other", buckets}});
    result = b.unary("aten.add.Tensor", *result, {{"other", int64_t{0}}});
    distance = b.unary("aten.abs.default", distance);
  } else {
    const TensorId zeros = b.unary("aten.zeros_like.default", distance);
    distance = b.unary("aten.neg.default", b.binary("aten.minimum.default", distance, zeros));
  }
  const TensorId small = b.unary("aten.lt.Scalar", distance, {{"other", exact}});
  TensorId far = b.to_dtype(distance, DType::float32);
  far = b.unary("aten.div.Tensor", far, {{"other", exact}});
  far = b.unary("aten.log.default", far);
  const double span = std::log(static_cast<double>(s.max_distance) / static_cast<double>(exact));
  far = b.unary("aten.div.Tensor", far, {{"other", span}});
  far = b.to_dtype(b.unary("aten.mul.Tensor", far, {{"other", buckets - exact}}), DType::int64);
  far = b.unary("aten.add.Tensor", far, {{"other", exact}});
  const TensorId last = b.unary("aten.full_like.default", far, {{"fill_value", buckets - 1}});
  far = b.binary("aten.minimum.default", far, last);
  const TensorId bucket = b.where(small, distance, far);
  return result ? b.add_(*result, bucket) : b.unary("aten.add.Tensor", bucket, {{"other", int64_t{0}}});
}

class T5Attention {
 public:
  T5Attention(ForwardBuilder& b, std::string_view name, const T5Sizes& s, bool has_bias, bool decodes)
      : b_(b),
        path_(b.path_of(name)),
        sizes_(s),
        decodes_(decodes),
        query_(b, std::string(name) + ".q", s.model, s.heads * s.key, false),
        key_(b, std::string(name) + ".k", s.model, s.heads * s.key, false),
        value_(b, std::string(name) + ".v", s.model, s.heads * s.key, false),
        out_(b, std::string(name) + ".o", s.heads * s.key, s.model, false) {
    if (has_bias) bias_.emplace(b, std::string(name) + ".relative_attention_bias", s.buckets, s.heads);
  }

  // `position_bias` is made by the first layer of a stack and handed to the others.
  TensorId operator()(TensorId x, TensorId memory, std::optional<TensorId> mask,
                      std::optional<TensorId>& position_bias) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId query = split_heads(b_, query_(x), sizes_.key);
    const TensorId key = split_heads(b_, key_(memory), sizes_.key);
    const TensorId value = split_heads(b_, value_(memory), sizes_.key);
    if (!position_bias) {
      position_bias = bias_ ? relative_bias(b_.extent(x, 1)) : no_bias(b_.extent(x, 1), b_.extent(memory, 1));
    }
    if (!sizes_.eager) {
      const AttentionOptions options = {
          .mask = mask_of(*position_bias, decodes_ && x == memory), .dropout = sizes_.dropout, .scale = 1.0};
      return out_(merge_heads(b_, b_.attention(query, key, value, options)));
    }
    EagerAttention options = {.scale = 1, .dropout = sizes_.dropout, .addends = {*position_bias}};
    if (mask) options.addends.push_back(*mask);
    return out_(merge_heads(b_, eager_attention(b_, query, key, value, options)));
  }

 private:
  [[nodiscard]] TensorId relative_bias(int64_t length) const {
    const TensorId values = (*bias_)(position_buckets(b_, length, sizes_, !decodes_));
    return b_.unsqueeze(b_.permute(values, {2, 0, 1}), 0);
  }
  // The biases of positions as a mask, with the lowest number where a later key would be seen.
  [[nodiscard]] TensorId mask_of(TensorId bias, bool causal) const {
    if (!causal) return b_.contiguous(bias);
    const int64_t length = b_.extent(bias, 2);
    const TensorId row = b_.unsqueeze(arange(b_, length), 1);
    const TensorId column = b_.unsqueeze(arange(b_, length), 0);
    const TensorId seen = b_.view(b_.binary("aten.ge.Tensor", row, column), {1, 1, length, length});
    const TensorId lowest = b_.create("aten.scalar_tensor.default", {}, DType::float32);
    return b_.contiguous(b_.where(seen, bias, lowest));
  }
  [[nodiscard]] TensorId no_bias(int64_t queries, int64_t keys) const {
    return b_.create("aten.zeros.default", {1, sizes_.heads, queries, keys}, DType::float32, {{"autocast", true}});
  }

  ForwardBuilder& b_;
  std::string path_;
  T5Sizes sizes_;
  bool decodes_;
  Linear query_, key_, value_, out_;
  std::optional<Embedding> bias_;
};

// T5LayerSelfAttention or T5LayerCrossAttention.
class AttentionLayer {
 public:
  AttentionLayer(ForwardBuilder& b, std::string_view name, std::string_view kind, const T5Sizes& s, bool has_bias,
                 bool decodes)
      : b_(b),
        path_(b.path_of(name)),
        attention_(b, fmt::format("{}.{}", name, kind), s, has_bias, decodes),
        norm_(b, std::string(name) + ".layer_norm", s.model),
        dropout_(b, std::string(name) + ".dropout", s.dropout) {}

  // Attends over `memory`, or over the normed input where there is none.
  TensorId operator()(TensorId x, std::optional<TensorId> memory, std::optional<TensorId> mask,
                      std::optional<TensorId>& position_bias) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId normed = norm_(x);
    return b_.add(x, dropout_(attention_(normed, memory.value_or(normed), mask, position_bias)));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  T5Attention attention_;
  RmsNorm norm_;
  Dropout dropout_;
};

class FeedForwardLayer {
 public:
  FeedForwardLayer(ForwardBuilder& b, std::string_view name, const T5Sizes& s)
      : b_(b),
        path_(b.path_of(name)),
        activation_(s.activation),
        inner_dropout_(b, fmt::format("{}.DenseReluDense.dropout", name), s.dropout),
        dropout_(b, fmt::format("{}.dropout", name), s.dropout) {
    const std::string dense = fmt::format("{}.DenseReluDense.", name);
    in_.emplace(b, dense + (s.gated ? "wi_0" : "wi"), s.model, s.feed_forward, false);
    if (s.gated) gate_.emplace(b, dense + "wi_1", s.model, s.feed_forward, false);
    out_.emplace(b, dense + "wo", s.feed_forward, s.model, false);
    norm_.emplace(b, fmt::format("{}.layer_norm", name), s.model);
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId normed = (*norm_)(x);
    TensorId y = (*in_)(normed);
    {
      const Scope activation(b_, "DenseReluDense.act");
      y = activate(b_, activation_, y);
    }
    if (gate_) y = b_.mul(y, (*gate_)(normed));
    y = inner_dropout_(y);
    {
      const Scope dense(b_, "DenseReluDense");
      y = b_.to_dtype(y, DType::float32);  // the type of the weight that follows
    }
    return b_.add(x, dropout_((*out_)(y)));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  std::string activation_;
  std::optional<Linear> in_, gate_, out_;
  std::optional<RmsNorm> norm_;
  Dropout inner_dropout_, dropout_;
};

class T5Block {
 public:
  T5Block(ForwardBuilder& b, const T5Sizes& s, bool first, bool decodes)
      : self_(b, "layer.0", "SelfAttention", s, first, decodes) {
    if (decodes) cross_.emplace(b, "layer.1", "EncDecAttention", s, false, decodes);
    feed_forward_.emplace(b, decodes ? "layer.2" : "layer.1", s);
  }

  struct Biases {
    std::optional<TensorId> self, cross;
  };

  TensorId operator()(TensorId x, std::optional<TensorId> memory, std::optional<TensorId> mask, Biases& biases) const {
    x = self_(x, std::nullopt, mask, biases.self);
    if (cross_) x = (*cross_)(x, memory, std::nullopt, biases.cross);
    return (*feed_forward_)(x);
  }

 private:
  AttentionLayer self_;
  std::optional<AttentionLayer> cross_;
  std::optional<FeedForwardLayer> feed_forward_;
};

class T5Stack {
 public:
  T5Stack(ForwardBuilder& b, std::string_view name, const T5Sizes& s, int64_t layers, bool decodes, TensorId shared)
      : b_(b),
        path_(b.path_of(name)),
        masks_(decodes && s.eager),
        dropout_(b, std::string(name) + ".dropout", s.dropout),
        shared_(shared) {
    const Scope scope(b, name);
    for (int64_t i = 0; i < layers; ++i) {
      const Scope block(b, fmt::format("block.{}", i));
      blocks_.emplace_back(b, s, i == 0, decodes);
    }
    norm_.emplace(b, "final_layer_norm", s.model);
  }

  TensorId operator()(TensorId tokens, std::optional<TensorId> memory) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t batch = b_.extent(tokens, 0);
    const int64_t length = b_.extent(tokens, 1);
    TensorId x = embed(tokens);
    std::optional<TensorId> mask;
    if (masks_) mask = causal_mask(b_, batch, length);
    x = dropout_(x);
    T5Block::Biases biases;
    for (const T5Block& block : blocks_) x = block(x, memory, mask, biases);
    return dropout_((*norm_)(x));
  }

 private:
  [[nodiscard]] TensorId embed(TensorId tokens) const {
    const Scope scope(b_, "embed_tokens");
    return b_.embedding(shared_, tokens);
  }

  ForwardBuilder& b_;
  std::string path_;
  bool masks_;
  Dropout dropout_;
  TensorId shared_;
  std::vector<T5Block> blocks_;
  std::optional<RmsNorm> norm_;
};

void build_t5(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "length", "vocab", "d_model", "d_kv", "d_ff", "heads", "max_distance"}) ||
      !within(b, c, {"layers", "decoder_layers"}, 1, kMostLayers) || !within(b, c, {"buckets"}, 4) ||
      !is_dropout(b, c.real("dropout")) || !is_attention(b, c) || !is_activation(b, c.text("activation"))) {
    return;
  }
  const T5Sizes sizes = {.model = c.integer("d_model"),
                         .key = c.integer("d_kv"),
                         .feed_forward = c.integer("d_ff"),
                         .heads = c.integer("heads"),
                         .buckets = c.integer("buckets"),
                         .max_distance = c.integer("max_distance"),
                         .dropout = c.real("dropout"),
                         .eager = is_eager(c),
                         .gated = c.flag("gated"),
                         .activation = c.text("activation")};
  const TensorId tokens = token_input(b, c);
  const Embedding shared(b, "shared", c.integer("vocab"), sizes.model);
  const T5Stack encoder(b, "encoder", sizes, c.integer("layers"), false, shared.weight());
  const T5Stack decoder(b, "decoder", sizes, c.integer("decoder_layers"), true, shared.weight());
  const TensorId memory = encoder(tokens, std::nullopt);
  TensorId x = decoder(tokens, memory);
  if (c.flag("scaled_output")) x = b.mul_scalar(x, std::pow(static_cast<double>(sizes.model), -0.5));
  const Scope scope(b, "lm_head");
  b.result(b.linear(x, shared.weight(), std::nullopt));
}

NamedModel model(const std::string& name, int64_t d_model, int64_t d_ff, int64_t layers, int64_t heads) {
  return {name,
          "t5",
          {{"d_model", d_model}, {"d_ff", d_ff}, {"layers", layers}, {"decoder_layers", layers}, {"heads", heads}}};
}

}  // namespace

Family t5_family() {
  return {.name = "t5",
          .description = "T5 encoder-decoder (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"d_model", 512, "width of the model"},
                                               {"d_kv", 64, "width of an attention head"},
                                               {"d_ff", 2048, "width of the feed-forward layers"},
                                               {"layers", 6, "encoder blocks"},
                                               {"decoder_layers", 6, "decoder blocks"},
                                               {"heads", 8, "attention heads"},
                                               {"buckets", 32, "buckets of relative positions"},
                                               {"max_distance", 128, "distance from which positions share a bucket"},
                                               {"activation", "relu", "activation of the feed-forward layers"},
                                               {"gated", false, "feed-forward layers have a gate (version 1.1)"},
                                               {"scaled_output", true, "the head's input is scaled by the width"},
                                               {"dropout", 0.1, "dropout, in attention too"},
                                               {"attention", "eager", attention_parameter().help}},
                                              8, 512, 32128),
          .build = build_t5};
}

std::vector<NamedModel> t5_models() {
  return {model("t5_small", 512, 2048, 6, 8), model("t5_base", 768, 3072, 12, 12),
          model("t5_large", 1024, 4096, 24, 16)};
}

}  // namespace forerun::zoo
