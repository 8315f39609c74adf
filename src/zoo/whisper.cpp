// Whisper: an encoder over a spectrogram behind two convolutions, a decoder over tokens; norms stand before each part.
//
// Source: WhisperForConditionalGeneration of transformers 5.22, sdpa attention, key-value cache off. The spectrogram has
// the one length that the model takes; the encoder's positions are parameters that are not trained. Layers are never
// dropped, but the library draws and reads a number for each all the same. Left out: spectrogram augmentation.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct WhisperSide {
  int64_t hidden, heads, intermediate;
  double dropout, attention_dropout, activation_dropout;
  std::string activation;
};

class WhisperAttention {
 public:
  WhisperAttention(ForwardBuilder& b, const std::string& name, const WhisperSide& s, bool causal)
      : b_(b),
        path_(b.path_of(name)),
        side_(s),
        causal_(causal),
        key_(b, name + ".k_proj", s.hidden, s.hidden, false),
        value_(b, name + ".v_proj", s.hidden, s.hidden),
        query_(b, name + ".q_proj", s.hidden, s.hidden),
        out_(b, name + ".out_proj", s.hidden, s.hidden) {}

  TensorId operator()(TensorId x, TensorId memory) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t head = side_.hidden / side_.heads;
    const double scale = std::pow(static_cast<double>(head), -0.5);
    const TensorId query = heads_apart(b_.mul_scalar(query_(x), scale), head);
    const TensorId key = heads_apart(key_(memory), head);
    const TensorId value = heads_apart(value_(memory), head);
    const AttentionOptions options = {.mask = {},
                                      .dropout = side_.attention_dropout,
                                      .causal = causal_ && b_.extent(x, 1) > 1,
                                      .scale = 1.0,  // the query is scaled already
                                      .never_masked = !causal_};
    return out_(merge_heads(b_, b_.attention(query, key, value, options)));
  }

 private:
  [[nodiscard]] TensorId heads_apart(TensorId x, int64_t head) const { return b_.contiguous(split_heads(b_, x, head)); }

  ForwardBuilder& b_;
  std::string path_;
  WhisperSide side_;
  bool causal_;
  Linear key_, value_, query_, out_;
};

// A layer of either side; the decoder's also looks at what the encoder made.
class WhisperLayer {
 public:
  WhisperLayer(ForwardBuilder& b, const WhisperSide& s, bool decoder)
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
    const TensorId normed = attention_norm_(x);
    x = b_.add(x, b_.dropout(attention_(normed, normed), side_.dropout));
    if (cross_) x = b_.add(x, b_.dropout((*cross_)((*cross_norm_)(x), *memory), side_.dropout));
    TensorId y = (*up_)((*final_norm_)(x));
    {
      const Scope activation(b_, "activation_fn");
      y = activate(b_, side_.activation, y);
    }
    y = (*down_)(b_.dropout(y, side_.activation_dropout));
    return b_.add(x, b_.dropout(y, side_.dropout));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  WhisperSide side_;
  WhisperAttention attention_;
  LayerNorm attention_norm_;
  std::optional<WhisperAttention> cross_;
  std::optional<LayerNorm> cross_norm_, final_norm_;
  std::optional<Linear> up_, down_;
};

// The layers of one side and the norm behind them.
class WhisperStack {
 public:
  WhisperStack(ForwardBuilder& b, const Configuration& c, bool decoder) : b_(b) {
    const WhisperSide side = {.hidden = c.integer("hidden"),
                              .heads = c.integer(decoder ? "decoder_heads" : "encoder_heads"),
                              .intermediate = c.integer(decoder ? "decoder_intermediate" : "encoder_intermediate"),
                              .dropout = c.real("dropout"),
                              .attention_dropout = c.real("attention_dropout"),
                              .activation_dropout = c.real("activation_dropout"),
                              .activation = c.text("activation")};
    for (int64_t i = 0; i < c.integer(decoder ? "decoder_layers" : "layers"); ++i) {
      const Scope scope(b, fmt::format("layers.{}", i));
      layers_.emplace_back(b, side, decoder);
    }
    norm_.emplace(b, "layer_norm", side.hidden);
  }

  TensorId operator()(TensorId x, std::optional<TensorId> memory) const {
    for (const WhisperLayer& layer : layers_) {
      draw_for_layer_drop(b_);
      x = layer(x, memory);
    }
    return (*norm_)(x);
  }

 private:
  ForwardBuilder& b_;
  std::vector<WhisperLayer> layers_;
  std::optional<LayerNorm> norm_;
};

class WhisperEncoder {
 public:
  WhisperEncoder(ForwardBuilder& b, const Configuration& c) : b_(b), path_(b.path_of("")), dropout_(c.real("dropout")) {
    constexpr int64_t kKernel = 3;
    const int64_t hidden = c.integer("hidden");
    weight1_ = b.parameter("conv1.weight", {hidden, c.integer("mel_bins"), kKernel});
    bias1_ = b.parameter("conv1.bias", {hidden});
    weight2_ = b.parameter("conv2.weight", {hidden, hidden, kKernel});
    bias2_ = b.parameter("conv2.bias", {hidden});
    positions_ = b.frozen_parameter("embed_positions.weight", {c.integer("source_positions"), hidden});
    stack_.emplace(b, c, false);
  }

  TensorId operator()(TensorId spectrogram) const {
    const Scope scope(b_, path_, Scope::absolute);
    TensorId x = convolved("conv1", spectrogram, weight1_, bias1_, 1);
    x = b_.permute(convolved("conv2", x, weight2_, bias2_, 2), {0, 2, 1});
    const TensorId numbers = arange(b_, b_.extent(positions_, 0));
    TensorId places;
    {
      const Scope embedding(b_, "embed_positions");
      places = b_.embedding(positions_, numbers);
    }
    return (*stack_)(b_.dropout(b_.add(x, places), dropout_), std::nullopt);
  }

 private:
  [[nodiscard]] TensorId convolved(std::string_view name, TensorId x, TensorId weight, TensorId bias,
                                   int64_t stride) const {
    {
      const Scope scope(b_, name);
      x = b_.conv(x, weight, bias, {.stride = {stride}, .padding = {1}});
    }
    return b_.gelu(x);
  }

  ForwardBuilder& b_;
  std::string path_;
  double dropout_;
  TensorId weight1_, bias1_, weight2_, bias2_, positions_;
  std::optional<WhisperStack> stack_;
};

class WhisperDecoder {
 public:
  WhisperDecoder(ForwardBuilder& b, const Configuration& c)
      : b_(b),
        path_(b.path_of("")),
        dropout_(c.real("dropout")),
        words_(b, "embed_tokens", c.integer("vocab"), c.integer("hidden")),
        positions_(b.parameter("embed_positions.weight", {c.integer("positions"), c.integer("hidden")})),
        stack_(b, c, true) {}

  [[nodiscard]] TensorId words() const { return words_.weight(); }

  TensorId operator()(TensorId tokens, TensorId memory) const {
    const Scope scope(b_, path_, Scope::absolute);
    const Shape shape = b_.shape(tokens);
    TensorId x = words_(tokens);
    const TensorId row = position_numbers(b_, shape[1]);
    const TensorId numbers =
        b_.opaque("aten.repeat.default", {row}, {{shape, DType::int64}}, {{"repeats", Shape{shape[0], 1}}}).front();
    TensorId places;
    {
      const Scope embedding(b_, "embed_positions");
      places = b_.index(positions_, {numbers}, b_.shape(x));
    }
    x = b_.dropout(b_.add(x, places), dropout_);
    look_for_packed_sequences(b_, numbers, shape[0]);
    return stack_(x, memory);
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  double dropout_;
  Embedding words_;
  TensorId positions_;
  WhisperStack stack_;
};

bool whisper_makes_sense(ForwardBuilder& b, const Configuration& c) {
  return within(b, c,
                {"batch", "length", "vocab", "hidden", "encoder_heads", "decoder_heads", "encoder_intermediate",
                 "decoder_intermediate", "mel_bins", "source_positions", "positions"}) &&
         within(b, c, {"layers", "decoder_layers"}, 1, kMostLayers) &&
         heads_divide(b, c.integer("encoder_heads"), c.integer("hidden")) &&
         heads_divide(b, c.integer("decoder_heads"), c.integer("hidden")) && is_activation(b, c.text("activation")) &&
         is_dropout(b, c.real("dropout")) && is_dropout(b, c.real("attention_dropout")) &&
         is_dropout(b, c.real("activation_dropout")) && fits_positions(b, c);
}

void build_whisper(ForwardBuilder& b, const Configuration& c) {
  if (!whisper_makes_sense(b, c)) return;
  const int64_t frames = 2 * c.integer("source_positions");  // the second convolution halves them
  const TensorId spectrogram = b.input("spectrogram", {c.integer("batch"), c.integer("mel_bins"), frames});
  const TensorId tokens = token_input(b, c);
  std::optional<WhisperEncoder> encoder;
  std::optional<WhisperDecoder> decoder;
  {
    const Scope scope(b, "model.encoder");
    encoder.emplace(b, c);
  }
  {
    const Scope scope(b, "model.decoder");
    decoder.emplace(b, c);
  }
  const TensorId memory = (*encoder)(spectrogram);
  const TensorId x = (*decoder)(tokens, memory);
  const Scope scope(b, "proj_out");
  b.result(b.linear(x, decoder->words(), std::nullopt));
}

}  // namespace

Family whisper_family() {
  return {
      .name = "whisper",
      .description = "Whisper (transformers)",
      .input = InputKind::tokens,
      .flavour = "hf",
      .parameters = with_token_parameters({{"hidden", 384, "width of the model"},
                                           {"layers", 4, "encoder layers"},
                                           {"decoder_layers", 4, "decoder layers"},
                                           {"encoder_heads", 6, "attention heads of the encoder"},
                                           {"decoder_heads", 6, "attention heads of the decoder"},
                                           {"encoder_intermediate", 1536, "width of the encoder's feed-forward layers"},
                                           {"decoder_intermediate", 1536, "width of the decoder's feed-forward layers"},
                                           {"mel_bins", 80, "bands of the spectrogram"},
                                           {"source_positions", 1500, "positions of the encoder, two frames each"},
                                           {"positions", 448, "longest sequence of tokens"},
                                           {"activation", "gelu", "activation of the feed-forward layers"},
                                           {"dropout", 0.0, "dropout outside attention"},
                                           {"attention_dropout", 0.0, "dropout in attention"},
                                           {"activation_dropout", 0.0, "dropout behind activations"}},
                                          8, 448, 51865),
      .build = build_whisper};
}

}  // namespace forerun::zoo
