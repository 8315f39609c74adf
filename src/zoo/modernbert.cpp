// ModernBERT's masked language model: norms before, rotary positions, gated feed-forward, a window in most layers.
//
// Source: ModernBertForMaskedLM of transformers 5.22, sdpa attention, no attention mask given, head tied to the word
// embeddings.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct ModernbertOptions {
  int64_t hidden, intermediate, heads;
  double eps, attention_dropout, mlp_dropout;
  bool attention_bias, mlp_bias, norm_bias;
  std::string activation;
};

// What all layers of a kind look at.
struct ModernbertContext {
  std::optional<TensorId> mask;
  RotaryTables rotary;
};

class ModernbertLayer {
 public:
  ModernbertLayer(ForwardBuilder& b, const ModernbertOptions& o, bool first) : b_(b), path_(b.path_of("")), o_(o) {
    if (!first) attention_norm_.emplace(b, "attn_norm", o.hidden, o.eps, o.norm_bias);
    qkv_.emplace(b, "attn.Wqkv", o.hidden, 3 * o.hidden, o.attention_bias);
    out_.emplace(b, "attn.Wo", o.hidden, o.hidden, o.attention_bias);
    mlp_norm_.emplace(b, "mlp_norm", o.hidden, o.eps, o.norm_bias);
    up_.emplace(b, "mlp.Wi", o.hidden, 2 * o.intermediate, o.mlp_bias);
    down_.emplace(b, "mlp.Wo", o.intermediate, o.hidden, o.mlp_bias);
  }

  TensorId operator()(TensorId x, const ModernbertContext& context) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.add(x, attend(attention_norm_ ? (*attention_norm_)(x) : x, context));
    return b_.add(x, feed_forward((*mlp_norm_)(x)));
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x, const ModernbertContext& context) const {
    const Scope scope(b_, "attn");
    const int64_t head = o_.hidden / o_.heads;
    const TensorId all = b_.view((*qkv_)(x), {b_.extent(x, 0), b_.extent(x, 1), 3, -1, head});
    std::vector<TensorId> parts = b_.unbind(all, -3);
    parts.resize(3, parts.front());
    for (TensorId& part : parts) part = b_.transpose(part, 1, 2);
    const TensorId cosine = b_.unsqueeze(context.rotary.cosine, 1);
    const RotaryTables spread = {cosine, b_.unsqueeze(context.rotary.sine, 1)};
    const TensorId query = rotate_in_float32(parts[0], spread);
    const TensorId key = rotate_in_float32(parts[1], spread);
    const TensorId typed_query = b_.type_as(query, parts[0]);
    const TensorId typed_key = b_.type_as(key, parts[0]);
    const AttentionOptions options = {
        .mask = context.mask, .dropout = o_.attention_dropout, .scale = std::pow(static_cast<double>(head), -0.5)};
    const TensorId y = (*out_)(merge_heads(b_, b_.attention(typed_query, typed_key, parts[2], options)));
    return Dropout(b_, "out_drop", o_.attention_dropout)(y);
  }

  [[nodiscard]] TensorId rotate_in_float32(TensorId x, const RotaryTables& tables) const {
    const TensorId scaled = b_.mul(b_.to_dtype(x, DType::float32), tables.cosine);
    const TensorId turned = turn_halves(b_, b_.to_dtype(x, DType::float32));
    return b_.add(scaled, b_.mul(turned, tables.sine));
  }

  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    const Scope scope(b_, "mlp");
    const std::vector<TensorId> parts = b_.chunk((*up_)(x), 2, -1);
    TensorId y = parts.front();
    {
      const Scope activation(b_, "act");
      y = activate(b_, o_.activation, y);
    }
    return (*down_)(Dropout(b_, "drop", o_.mlp_dropout)(b_.mul(y, parts.back())));
  }

  ForwardBuilder& b_;
  std::string path_;
  ModernbertOptions o_;
  std::optional<LayerNorm> attention_norm_, mlp_norm_;
  std::optional<Linear> qkv_, out_, up_, down_;
};

bool modernbert_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (c.text("pattern").empty() || c.text("pattern").find_first_not_of("fs") != std::string::npos) {
    b.fail(fmt::format("pattern is '{}'", c.text("pattern").substr(0, 80)), "write f and s, one letter a layer");
    return false;
  }
  return within(b, c, {"batch", "length", "vocab", "hidden", "intermediate", "heads", "window"}) &&
         within(b, c, {"layers"}, 1, kMostLayers) && heads_divide(b, c.integer("heads"), c.integer("hidden")) &&
         is_activation(b, c.text("activation")) && is_activation(b, c.text("head_activation")) &&
         is_dropout(b, c.real("attention_dropout")) && is_dropout(b, c.real("mlp_dropout")) &&
         is_dropout(b, c.real("embedding_dropout"));
}

// The tables of one kind of layer, from buffers of its own.
TensorId modernbert_frequencies(ForwardBuilder& b, const std::string& kind, int64_t head) {
  const TensorId frequencies = b.buffer(fmt::format("model.rotary_emb.{}_inv_freq", kind), {head / 2});
  b.buffer(fmt::format("model.rotary_emb.{}_original_inv_freq", kind), {head / 2});
  return frequencies;
}

void build_modernbert(ForwardBuilder& b, const Configuration& c) {
  if (!modernbert_makes_sense(b, c)) return;
  const ModernbertOptions o = {.hidden = c.integer("hidden"),
                               .intermediate = c.integer("intermediate"),
                               .heads = c.integer("heads"),
                               .eps = c.real("eps"),
                               .attention_dropout = c.real("attention_dropout"),
                               .mlp_dropout = c.real("mlp_dropout"),
                               .attention_bias = c.flag("attention_bias"),
                               .mlp_bias = c.flag("mlp_bias"),
                               .norm_bias = c.flag("norm_bias"),
                               .activation = c.text("activation")};
  const std::string& pattern = c.text("pattern");
  const TensorId tokens = token_input(b, c);
  const Embedding words(b, "model.embeddings.tok_embeddings", c.integer("vocab"), o.hidden);
  const LayerNorm embedding_norm(b, "model.embeddings.norm", o.hidden, o.eps, o.norm_bias);
  std::vector<ModernbertLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("model.layers.{}", i));
    layers.emplace_back(b, o, i == 0);
  }
  const LayerNorm final_norm(b, "model.final_norm", o.hidden, o.eps, o.norm_bias);
  const bool full = pattern.find('f') != std::string::npos;
  const bool sliding = pattern.find('s') != std::string::npos;
  std::optional<TensorId> full_frequencies, sliding_frequencies;
  if (full) full_frequencies = modernbert_frequencies(b, "full_attention", o.hidden / o.heads);
  if (sliding) sliding_frequencies = modernbert_frequencies(b, "sliding_attention", o.hidden / o.heads);
  const Linear head(b, "head.dense", o.hidden, o.hidden, c.flag("head_bias"));
  const LayerNorm head_norm(b, "head.norm", o.hidden, o.eps, o.norm_bias);
  std::optional<TensorId> bias;
  if (c.flag("decoder_bias")) bias = b.parameter("decoder.bias", {c.integer("vocab")});

  TensorId x;
  {
    const Scope scope(b, "model");
    const TensorId positions = b.unsqueeze(arange(b, c.integer("length")), 0);
    x = Dropout(b, "embeddings.drop", c.real("embedding_dropout"))(embedding_norm(words(tokens)));
    ModernbertContext everywhere, nearby;
    const MaskOptions mask = {
        .batch = c.integer("batch"), .length = c.integer("length"), .window = c.integer("window")};
    nearby.mask = encoder_mask(b, mask);
    if (full) everywhere.rotary = rotary_tables_of(b, *full_frequencies, positions, x);
    if (sliding) nearby.rotary = rotary_tables_of(b, *sliding_frequencies, positions, x);
    for (size_t i = 0; i < layers.size(); ++i) {
      x = layers[i](x, pattern[i % pattern.size()] == 's' ? nearby : everywhere);
    }
    x = final_norm(x);
  }
  x = head(x);
  {
    const Scope scope(b, "head.act");
    x = activate(b, c.text("head_activation"), x);
  }
  x = head_norm(x);
  const Scope scope(b, "decoder");
  b.result(b.linear(x, words.weight(), bias));
}

}  // namespace

Family modernbert_family() {
  return {.name = "modernbert",
          .description = "ModernBERT's masked language model (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters =
              with_token_parameters({{"hidden", 768, "width of the model"},
                                     {"intermediate", 1152, "width of the feed-forward layers"},
                                     {"layers", 22, "encoder layers"},
                                     {"heads", 12, "attention heads"},
                                     {"pattern", "fss", "attention layer by layer, repeated: f (full), s (window)"},
                                     {"window", 64, "tokens to each side within the window"},
                                     {"eps", 1e-5, "epsilon of the norms"},
                                     {"norm_bias", false, "norms have biases"},
                                     {"attention_bias", false, "attention's projections have biases"},
                                     {"mlp_bias", false, "the feed-forward layers have biases"},
                                     {"head_bias", false, "the head's first layer has a bias"},
                                     {"decoder_bias", true, "the head's last layer has a bias"},
                                     {"activation", "gelu", "activation of the feed-forward layers"},
                                     {"head_activation", "gelu", "activation of the head"},
                                     {"attention_dropout", 0.0, "dropout in and behind attention"},
                                     {"mlp_dropout", 0.0, "dropout in the feed-forward layers"},
                                     {"embedding_dropout", 0.0, "dropout behind the embedding"}},
                                    16, 512, 50368),
          .build = build_modernbert};
}

}  // namespace forerun::zoo
