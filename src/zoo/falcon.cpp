// Falcon: attention and feed-forward side by side from one norm or two, one key-value head or groups of them.
//
// Source: FalconForCausalLM of transformers 5.22, sdpa attention with a mask that the model always makes, key-value cache
// off. Its linear layers are written as products with a transposed weight. Left out: ALiBi.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct FalconOptions {
  int64_t hidden, intermediate, heads, kv_heads;
  double eps, dropout, attention_dropout;
  bool bias, grouped, parallel, two_norms;
  std::string activation;
};

// FalconLinear: x @ weight.T + bias.
class ProductLinear {
 public:
  ProductLinear(ForwardBuilder& b, const std::string& name, int64_t in, int64_t out, bool bias)
      : b_(b), path_(b.path_of(name)), weight_(b.parameter(name + ".weight", {out, in})) {
    if (bias) bias_ = b.parameter(name + ".bias", {out});
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId y = b_.matmul(x, b_.permute(weight_, {1, 0}));
    return bias_ ? b_.add(y, *bias_) : y;
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  TensorId weight_;
  std::optional<TensorId> bias_;
};

class FalconAttention {
 public:
  FalconAttention(ForwardBuilder& b, const FalconOptions& o)
      : b_(b),
        path_(b.path_of("self_attention")),
        o_(o),
        head_(o.hidden / o.heads),
        qkv_(b, "self_attention.query_key_value", o.hidden, (o.heads + 2 * o.kv_heads) * head_, o.bias),
        out_(b, "self_attention.dense", o.hidden, o.hidden, o.bias) {}

  TensorId operator()(TensorId x, const RotaryTables& tables, TensorId mask) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t batch = b_.extent(x, 0);
    const int64_t length = b_.extent(x, 1);
    Heads h = split(qkv_(x));
    for (TensorId* part : {&h.query, &h.key, &h.value}) {
      const int64_t heads = b_.extent(*part, 2);
      *part = b_.reshape(b_.transpose(*part, 1, 2), {batch, heads, length, head_});
    }
    const TensorId cosine = b_.unsqueeze(tables.cosine, 1);
    const RotaryTables spread = {cosine, b_.unsqueeze(tables.sine, 1)};
    h.query = rotate_halves(b_, h.query, spread);
    h.key = rotate_halves(b_, h.key, spread);
    TensorId y = b_.attention(h.query, h.key, h.value, {.mask = mask});
    y = b_.permute(b_.view(y, {batch, o_.heads, length, head_}), {0, 2, 1, 3});
    return out_(b_.reshape(y, {batch, length, o_.hidden}));
  }

 private:
  struct Heads {
    TensorId query, key, value;  // [batch, length, heads, head]
  };

  [[nodiscard]] Heads split(TensorId fused) const {
    const int64_t batch = b_.extent(fused, 0);
    const int64_t length = b_.extent(fused, 1);
    if (o_.grouped) return split_groups(b_.view(fused, {batch, length, -1, o_.heads / o_.kv_heads + 2, head_}));
    if (o_.kv_heads == o_.heads) {
      const TensorId parts = b_.view(fused, {batch, length, o_.heads, 3, head_});
      const TensorId query = b_.select(parts, 3, 0);
      const TensorId key = b_.select(parts, 3, 1);
      return {query, key, b_.select(parts, 3, 2)};
    }
    const TensorId parts = b_.view(fused, {batch, length, o_.heads + 2, head_});
    const TensorId query = b_.slice(parts, 2, 0, o_.heads);
    const TensorId key = taken_by_list(parts, {batch, length, 1, head_});
    return {query, key, taken_by_list(parts, {batch, length, 1, head_})};
  }

  // Each group holds its queries, one key and one value, which are then repeated.
  [[nodiscard]] Heads split_groups(TensorId parts) const {
    const Shape s = b_.shape(parts);
    const Shape one = {s[0], s[1], s[2], 1, s[4]};
    const TensorId query = b_.slice(parts, 3, 0, s[3] - 2);
    TensorId key = taken_by_list(parts, one);
    TensorId value = taken_by_list(parts, one);
    key = b_.expand(key, b_.shape(query));
    value = b_.expand(value, b_.shape(query));
    const TensorId flat = b_.flatten(query, 2, 3);
    key = b_.flatten(key, 2, 3);
    return {flat, key, b_.flatten(value, 2, 3)};
  }

  // x[..., [-1], :]: the list becomes a tensor in host memory.
  [[nodiscard]] TensorId taken_by_list(TensorId x, const Shape& result) const {
    return b_.index(x, {b_.create("aten.lift_fresh.default", {1}, DType::int64)}, result);
  }

  ForwardBuilder& b_;
  std::string path_;
  FalconOptions o_;
  int64_t head_;
  ProductLinear qkv_, out_;
};

class FalconLayer {
 public:
  FalconLayer(ForwardBuilder& b, const FalconOptions& o)
      : b_(b),
        path_(b.path_of("")),
        o_(o),
        attention_(b, o),
        up_(b, "mlp.dense_h_to_4h", o.hidden, o.intermediate, o.bias),
        down_(b, "mlp.dense_4h_to_h", o.intermediate, o.hidden, o.bias) {
    if (!o.parallel) feed_forward_norm_.emplace(b, "post_attention_layernorm", o.hidden, o.eps);
    attention_norm_.emplace(b, o.two_norms ? "ln_attn" : "input_layernorm", o.hidden, o.eps);
    if (o.two_norms) feed_forward_norm_.emplace(b, "ln_mlp", o.hidden, o.eps);
  }

  TensorId operator()(TensorId x, const RotaryTables& tables, TensorId mask) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId normed = (*attention_norm_)(x);
    TensorId before = o_.two_norms ? (*feed_forward_norm_)(x) : normed;
    const TensorId attended = attention_(normed, tables, mask);
    if (!o_.parallel) {
      x = b_.add(x, b_.dropout(attended, o_.attention_dropout));
      before = (*feed_forward_norm_)(x);
    }
    TensorId y = feed_forward(before);
    if (o_.parallel) y = b_.add_(y, attended);
    return b_.add(x, b_.dropout(y, o_.dropout));
  }

 private:
  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    x = up_(x);
    {
      const Scope activation(b_, "mlp.act");
      x = activate(b_, o_.activation, x);
    }
    return down_(x);
  }

  ForwardBuilder& b_;
  std::string path_;
  FalconOptions o_;
  FalconAttention attention_;
  ProductLinear up_, down_;
  std::optional<LayerNorm> attention_norm_, feed_forward_norm_;
};

bool falcon_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "length", "vocab", "hidden", "intermediate", "heads", "kv_heads"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !heads_divide(b, c.integer("heads"), c.integer("hidden")) ||
      !heads_divide(b, c.integer("kv_heads"), c.integer("heads")) || !is_activation(b, c.text("activation")) ||
      !is_dropout(b, c.real("dropout")) || !is_dropout(b, c.real("attention_dropout"))) {
    return false;
  }
  const int64_t kv_heads = c.integer("kv_heads");
  if (!c.flag("grouped") && kv_heads != 1 && kv_heads != c.integer("heads")) {
    b.fail(fmt::format("{} key-value heads without groups", kv_heads), "set kv_heads to 1 or to heads");
    return false;
  }
  const int64_t head = c.integer("hidden") / c.integer("heads");
  if (head % 2 == 0) return true;
  b.fail(fmt::format("heads are {} wide", head), "choose heads of an even width");
  return false;
}

void build_falcon(ForwardBuilder& b, const Configuration& c) {
  if (!falcon_makes_sense(b, c)) return;
  const FalconOptions o = {.hidden = c.integer("hidden"),
                           .intermediate = c.integer("intermediate"),
                           .heads = c.integer("heads"),
                           .kv_heads = c.integer("kv_heads"),
                           .eps = c.real("eps"),
                           .dropout = c.real("dropout"),
                           .attention_dropout = c.real("attention_dropout"),
                           .bias = c.flag("bias"),
                           .grouped = c.flag("grouped"),
                           .parallel = c.flag("parallel"),
                           .two_norms = c.flag("two_norms"),
                           .activation = c.text("activation")};
  const int64_t head = o.hidden / o.heads;
  const TensorId tokens = token_input(b, c);
  std::optional<Scope> model(std::in_place, b, "transformer");
  const Embedding words(b, "word_embeddings", c.integer("vocab"), o.hidden);
  std::vector<FalconLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("h.{}", i));
    layers.emplace_back(b, o);
  }
  const LayerNorm norm(b, "ln_f", o.hidden, o.eps);
  const TensorId frequencies = b.buffer("rotary_emb.inv_freq", {head / 2});
  b.buffer("rotary_emb.original_inv_freq", {head / 2});
  model.reset();
  std::optional<Linear> untied;
  if (!c.flag("tied")) untied.emplace(b, "lm_head", o.hidden, c.integer("vocab"), false);

  model.emplace(b, "transformer");
  TensorId x = words(tokens);
  const TensorId positions = position_numbers(b, c.integer("length"));
  const TensorId mask = seen_keys(b, {.batch = c.integer("batch"), .length = c.integer("length")});
  const RotaryTables tables = rotary_tables_of(b, frequencies, positions, x);
  for (const FalconLayer& layer : layers) x = layer(x, tables, mask);
  x = norm(x);
  model.reset();
  b.result(token_scores(b, x, untied, words));
}

}  // namespace

Family falcon_family() {
  return {.name = "falcon",
          .description = "Falcon (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"hidden", 4544, "width of the model"},
                                               {"intermediate", 18176, "width of the feed-forward layers"},
                                               {"layers", 32, "layers"},
                                               {"heads", 71, "attention heads"},
                                               {"kv_heads", 1, "key-value heads; 1 or heads, unless grouped"},
                                               {"grouped", false, "heads lie in groups with their key and value (40B)"},
                                               {"parallel", true, "attention and feed-forward side by side"},
                                               {"two_norms", false, "a norm for each of them"},
                                               {"eps", 1e-5, "epsilon of the norms"},
                                               {"activation", "gelu", "activation of the feed-forward layers"},
                                               {"attention_dropout", 0.0, "dropout behind attention, unless parallel"},
                                               {"dropout", 0.0, "dropout behind feed-forward"},
                                               {"bias", false, "linear layers have biases"},
                                               {"tied", true, "the head shares the embedding's weight"}},
                                              1, 2048, 65024),
          .build = build_falcon};
}

}  // namespace forerun::zoo
