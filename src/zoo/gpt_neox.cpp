// GPT-NeoX (Pythia): layer norms, one projection for queries, keys and values, rotary positions on a part of each head,
// attention and feed-forward side by side.
//
// Source: GPTNeoXForCausalLM of transformers 5.22, causal sdpa attention, key-value cache off.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct NeoxOptions {
  int64_t hidden, intermediate, heads, rotary;
  double eps, attention_dropout, dropout;
  bool bias, parallel;
  std::string activation;
};

class NeoxLayer {
 public:
  NeoxLayer(ForwardBuilder& b, const NeoxOptions& o)
      : b_(b),
        path_(b.path_of("")),
        o_(o),
        norm1_(b, "input_layernorm", o.hidden, o.eps),
        norm2_(b, "post_attention_layernorm", o.hidden, o.eps),
        qkv_(b, "attention.query_key_value", o.hidden, 3 * o.hidden, o.bias),
        out_(b, "attention.dense", o.hidden, o.hidden, o.bias),
        up_(b, "mlp.dense_h_to_4h", o.hidden, o.intermediate),
        down_(b, "mlp.dense_4h_to_h", o.intermediate, o.hidden) {}

  TensorId operator()(TensorId x, const RotaryTables& rotary) const {
    const Scope scope(b_, path_, Scope::absolute);
    TensorId attended = attend(norm1_(x), rotary);
    attended = Dropout(b_, "post_attention_dropout", o_.dropout)(attended);
    if (!o_.parallel) {
      attended = b_.add(attended, x);
      return b_.add(feed_forward(norm2_(attended)), attended);
    }
    const TensorId y = feed_forward(norm2_(x));
    return b_.add(b_.add(y, attended), x);
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x, const RotaryTables& rotary) const {
    const Scope scope(b_, "attention");
    const int64_t head = o_.hidden / o_.heads;
    std::vector<TensorId> parts = b_.chunk(split_heads(b_, qkv_(x), 3 * head), 3, -1);
    parts.resize(3, parts.front());
    rotate(parts[0], parts[1], rotary);
    const AttentionOptions options = {.mask = {},
                                      .dropout = o_.attention_dropout,
                                      .causal = b_.extent(x, 1) > 1,
                                      .scale = std::pow(static_cast<double>(head), -0.5)};
    return out_(merge_heads(b_, b_.attention(parts[0], parts[1], parts[2], options)));
  }

  void rotate(TensorId& query, TensorId& key, const RotaryTables& tables) const {
    const TensorId cosine = b_.unsqueeze(tables.cosine, 1);
    const RotaryTables spread = {cosine, b_.unsqueeze(tables.sine, 1)};
    const TensorId query_part = take_first(b_, query, 3, o_.rotary);
    const TensorId query_rest = b_.slice(query, 3, o_.rotary, kToEnd);
    const TensorId key_part = take_first(b_, key, 3, o_.rotary);
    const TensorId key_rest = b_.slice(key, 3, o_.rotary, kToEnd);
    const TensorId turned_query = rotate_halves(b_, query_part, spread);
    const TensorId turned_key = rotate_halves(b_, key_part, spread);
    query = b_.cat({turned_query, query_rest}, -1);
    key = b_.cat({turned_key, key_rest}, -1);
  }

  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    {
      const Scope scope(b_, "mlp");
      x = up_(x);
      const Scope activation(b_, "act");
      x = activate(b_, o_.activation, x);
    }
    return Dropout(b_, "post_mlp_dropout", o_.dropout)(down_(x));
  }

  ForwardBuilder& b_;
  std::string path_;
  NeoxOptions o_;
  LayerNorm norm1_, norm2_;
  Linear qkv_, out_, up_, down_;
};

bool neox_makes_sense(ForwardBuilder& b, const Configuration& c) {
  return within(b, c, {"batch", "length", "vocab", "hidden", "intermediate", "heads"}) &&
         within(b, c, {"layers"}, 1, kMostLayers) && heads_divide(b, c.integer("heads"), c.integer("hidden")) &&
         is_activation(b, c.text("activation")) && is_dropout(b, c.real("dropout")) &&
         is_dropout(b, c.real("attention_dropout"));
}

std::optional<NeoxOptions> neox_options(ForwardBuilder& b, const Configuration& c) {
  const int64_t head = c.integer("hidden") / c.integer("heads");
  const auto rotary = static_cast<int64_t>(static_cast<double>(head) * c.real("rotary"));
  if (rotary < 2 || rotary % 2 != 0 || rotary > head) {
    b.fail(fmt::format("rotary positions on {} of {} numbers of a head", rotary, head), "choose an even part");
    return std::nullopt;
  }
  return NeoxOptions{.hidden = c.integer("hidden"),
                     .intermediate = c.integer("intermediate"),
                     .heads = c.integer("heads"),
                     .rotary = rotary,
                     .eps = c.real("eps"),
                     .attention_dropout = c.real("attention_dropout"),
                     .dropout = c.real("dropout"),
                     .bias = c.flag("bias"),
                     .parallel = c.flag("parallel"),
                     .activation = c.text("activation")};
}

void build_neox(ForwardBuilder& b, const Configuration& c) {
  if (!neox_makes_sense(b, c)) return;
  const std::optional<NeoxOptions> options = neox_options(b, c);
  if (!options) return;
  const TensorId tokens = token_input(b, c);
  const Embedding embedding(b, "gpt_neox.embed_in", c.integer("vocab"), options->hidden);
  std::vector<NeoxLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("gpt_neox.layers.{}", i));
    layers.emplace_back(b, *options);
  }
  const LayerNorm norm(b, "gpt_neox.final_layer_norm", options->hidden, options->eps);
  const TensorId frequencies = b.buffer("gpt_neox.rotary_emb.inv_freq", {options->rotary / 2});
  b.buffer("gpt_neox.rotary_emb.original_inv_freq", {options->rotary / 2});
  std::optional<Linear> head;
  if (!c.flag("tied")) head.emplace(b, "lm_head", options->hidden, c.integer("vocab"), false);

  TensorId x;
  {
    const Scope scope(b, "gpt_neox");
    x = embedding(tokens);
    const TensorId positions = position_numbers(b, c.integer("length"));
    decoder_mask(b, positions, {.batch = c.integer("batch"), .length = c.integer("length")});
    x = Dropout(b, "emb_dropout", options->dropout)(x);
    const RotaryTables rotary = rotary_tables_of(b, frequencies, positions, x);
    for (const NeoxLayer& layer : layers) x = layer(x, rotary);
    x = norm(x);
  }
  b.result(token_scores(b, x, head, embedding));
}

}  // namespace

Family gpt_neox_family() {
  return {.name = "gpt_neox",
          .description = "GPT-NeoX and Pythia (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"hidden", 6144, "width of the model"},
                                               {"intermediate", 24576, "width of the feed-forward layers"},
                                               {"layers", 44, "layers"},
                                               {"heads", 64, "attention heads"},
                                               {"rotary", 0.25, "part of each head with rotary positions"},
                                               {"eps", 1e-5, "epsilon of the norms"},
                                               {"activation", "gelu", "activation of the feed-forward layers"},
                                               {"attention_dropout", 0.0, "dropout in attention"},
                                               {"dropout", 0.0, "dropout elsewhere"},
                                               {"bias", true, "attention's projections have biases"},
                                               {"parallel", true, "attention and feed-forward side by side"},
                                               {"tied", false, "the head shares the embedding's weight"}},
                                              1, 2048, 50432),
          .build = build_neox};
}

}  // namespace forerun::zoo
