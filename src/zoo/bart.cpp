// BART: an encoder and a decoder with norms behind each part, learned positions, one embedding for both sides and the head.
//
// Source: BartForConditionalGeneration of transformers 5.22, sdpa attention, key-value cache off. Both sides read the same
// tokens. Layers are never dropped, but the library draws and reads a number for each all the same.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

constexpr int64_t kBartOffset = 2;  // rows of the position tables that no position uses

struct BartSide {
  int64_t hidden, heads, intermediate;
  double dropout, attention_dropout, activation_dropout;
  std::string activation;
};

class BartAttention {
 public:
  BartAttention(ForwardBuilder& b, const std::string& name, const BartSide& s, bool causal)
      : b_(b),
        path_(b.path_of(name)),
        side_(s),
        causal_(causal),
        key_(b, name + ".k_proj", s.hidden, s.hidden),
        value_(b, name + ".v_proj", s.hidden, s.hidden),
        query_(b, name + ".q_proj", s.hidden, s.hidden),
        out_(b, name + ".out_proj", s.hidden, s.hidden) {}

  TensorId operator()(TensorId x, TensorId memory) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t head = side_.hidden / side_.heads;
    const TensorId query = split_heads(b_, query_(x), head);
    TensorId key = key_(memory);
    TensorId value = value_(memory);
    key = split_heads(b_, key, head);
    value = split_heads(b_, value, head);
    const AttentionOptions options = {.mask = {},
                                      .dropout = side_.attention_dropout,
                                      .causal = causal_ && b_.extent(x, 1) > 1,
                                      .scale = std::pow(static_cast<double>(head), -0.5)};
    return out_(merge_heads(b_, b_.attention(query, key, value, options)));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  BartSide side_;
  bool causal_;
  Linear key_, value_, query_, out_;
};

// A layer of either side; the decoder's also looks at what the encoder made.
class BartLayer {
 public:
  BartLayer(ForwardBuilder& b, const BartSide& s, bool decoder)
      : b_(b),
        path_(b.path_of("")),
        side_(s),
        attention_(b, "self_attn", s, decoder),
        attention_norm_(b, "self_attn_layer_norm", s.hidden) {
    if (decoder) {
      cross_.emplace(b, "encoder_attn", s, false);
      cross_norm_.emplace(b, "encoder_attn_layer_norm", s.hidden);
    }
    up_.emplace(b, "fc1", s.hidden, s.intermediate);
    down_.emplace(b, "fc2", s.intermediate, s.hidden);
    final_norm_.emplace(b, "final_layer_norm", s.hidden);
  }

  TensorId operator()(TensorId x, std::optional<TensorId> memory) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = attention_norm_(b_.add(x, b_.dropout(attention_(x, x), side_.dropout)));
    if (cross_) x = (*cross_norm_)(b_.add(x, b_.dropout((*cross_)(x, *memory), side_.dropout)));
    TensorId y = (*up_)(x);
    {
      const Scope activation(b_, "activation_fn");
      y = activate(b_, side_.activation, y);
    }
    y = (*down_)(b_.dropout(y, side_.activation_dropout));
    return (*final_norm_)(b_.add(x, b_.dropout(y, side_.dropout)));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  BartSide side_;
  BartAttention attention_;
  LayerNorm attention_norm_;
  std::optional<BartAttention> cross_;
  std::optional<LayerNorm> cross_norm_, final_norm_;
  std::optional<Linear> up_, down_;
};

// One side of the model: positions, norm and layers.
class BartStack {
 public:
  BartStack(ForwardBuilder& b, const Configuration& c, bool decoder)
      : b_(b), path_(b.path_of("")), decoder_(decoder), dropout_(c.real("dropout")) {
    const BartSide side = {.hidden = c.integer("hidden"),
                           .heads = c.integer(decoder ? "decoder_heads" : "encoder_heads"),
                           .intermediate = c.integer(decoder ? "decoder_intermediate" : "encoder_intermediate"),
                           .dropout = c.real("dropout"),
                           .attention_dropout = c.real("attention_dropout"),
                           .activation_dropout = c.real("activation_dropout"),
                           .activation = c.text("activation")};
    positions_.emplace(b, "embed_positions", c.integer("positions") + kBartOffset, side.hidden);
    for (int64_t i = 0; i < c.integer(decoder ? "decoder_layers" : "layers"); ++i) {
      const Scope scope(b, fmt::format("layers.{}", i));
      layers_.emplace_back(b, side, decoder);
    }
    norm_.emplace(b, "layernorm_embedding", side.hidden);
  }

  TensorId operator()(TensorId tokens, TensorId words, std::optional<TensorId> memory) const {
    const Scope scope(b_, path_, Scope::absolute);
    TensorId x;
    {
      const Scope embedding(b_, "embed_tokens");
      x = b_.mul_scalar(b_.embedding(words, tokens), 1.0);
    }
    x = b_.add(x, (*positions_)(decoder_ ? decoder_positions(tokens) : encoder_positions(tokens, x)));
    x = b_.dropout((*norm_)(x), dropout_);
    for (const BartLayer& layer : layers_) {
      draw_for_layer_drop(b_);
      x = layer(x, memory);
    }
    return x;
  }

 private:
  [[nodiscard]] TensorId encoder_positions(TensorId tokens, TensorId x) const {
    b_.select(x, 2, -1);  // looked at for its shape alone
    const Scope scope(b_, "embed_positions");
    const int64_t length = b_.extent(tokens, 1);
    const TensorId numbers = b_.create("aten.arange.start", {length}, DType::int64, {{"end", length}});
    return b_.unary("aten.add.Tensor", b_.expand(numbers, {b_.extent(tokens, 0), -1}), {{"other", kBartOffset}});
  }

  // The decoder makes a mask of ones and reads on the host that nothing is padded.
  [[nodiscard]] TensorId decoder_positions(TensorId tokens) const {
    const Shape shape = b_.shape(tokens);
    const TensorId numbers = b_.unary("aten.add.Tensor", arange(b_, shape[1]), {{"other", int64_t{0}}});
    const TensorId kept = b_.to_dtype(b_.create("aten.ones.default", shape, DType::float32), DType::boolean);
    const TensorId count = b_.opaque("aten.sum.default", {kept}, {{{}, DType::int64}}).front();
    const TensorId whole = b_.unary("aten.eq.Scalar", count, {{"other", shape[0] * shape[1]}});
    b_.opaque("aten._local_scalar_dense.default", {whole}, {});
    const Scope scope(b_, "embed_positions");
    return b_.unary("aten.add.Tensor", b_.unsqueeze(numbers, 0), {{"other", kBartOffset}});
  }

  ForwardBuilder& b_;
  std::string path_;
  bool decoder_;
  double dropout_;
  std::optional<Embedding> positions_;
  std::vector<BartLayer> layers_;
  std::optional<LayerNorm> norm_;
};

bool bart_makes_sense(ForwardBuilder& b, const Configuration& c) {
  return within(b, c,
                {"batch", "length", "vocab", "hidden", "encoder_heads", "decoder_heads", "encoder_intermediate",
                 "decoder_intermediate", "positions"}) &&
         within(b, c, {"layers", "decoder_layers"}, 1, kMostLayers) &&
         heads_divide(b, c.integer("encoder_heads"), c.integer("hidden")) &&
         heads_divide(b, c.integer("decoder_heads"), c.integer("hidden")) && is_activation(b, c.text("activation")) &&
         is_dropout(b, c.real("dropout")) && is_dropout(b, c.real("attention_dropout")) &&
         is_dropout(b, c.real("activation_dropout")) && fits_positions(b, c);
}

void build_bart(ForwardBuilder& b, const Configuration& c) {
  if (!bart_makes_sense(b, c)) return;
  const TensorId tokens = token_input(b, c);
  const TensorId words = b.parameter("model.shared.weight", {c.integer("vocab"), c.integer("hidden")});
  std::optional<BartStack> encoder, decoder;
  {
    const Scope scope(b, "model.encoder");
    encoder.emplace(b, c, false);
  }
  {
    const Scope scope(b, "model.decoder");
    decoder.emplace(b, c, true);
  }
  const TensorId bias = b.buffer("final_logits_bias", {1, c.integer("vocab")});
  const TensorId memory = (*encoder)(tokens, words, std::nullopt);
  TensorId x = (*decoder)(tokens, words, memory);
  {
    const Scope scope(b, "lm_head");
    x = b.linear(x, words, std::nullopt);
  }
  b.result(b.add(x, bias));
}

}  // namespace

Family bart_family() {
  return {
      .name = "bart",
      .description = "BART (transformers); both sides read the same tokens",
      .input = InputKind::tokens,
      .flavour = "hf",
      .parameters = with_token_parameters({{"hidden", 1024, "width of the model"},
                                           {"layers", 12, "encoder layers"},
                                           {"decoder_layers", 12, "decoder layers"},
                                           {"encoder_heads", 16, "attention heads of the encoder"},
                                           {"decoder_heads", 16, "attention heads of the decoder"},
                                           {"encoder_intermediate", 4096, "width of the encoder's feed-forward layers"},
                                           {"decoder_intermediate", 4096, "width of the decoder's feed-forward layers"},
                                           {"positions", 1024, "longest sequence"},
                                           {"activation", "gelu", "activation of the feed-forward layers"},
                                           {"dropout", 0.1, "dropout outside attention"},
                                           {"attention_dropout", 0.0, "dropout in attention"},
                                           {"activation_dropout", 0.0, "dropout behind activations"}},
                                          4, 512, 50265),
      .build = build_bart};
}

}  // namespace forerun::zoo
