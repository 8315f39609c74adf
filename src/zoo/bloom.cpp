// BLOOM: ALiBi in place of positions, attention as batched products, a GELU with a gradient of its own.
//
// Source: BloomForCausalLM of transformers 5.22, which has eager attention alone; no padding mask is given, key-value
// cache off. Left out: pretraining_tp with slow_but_exact.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct BloomOptions {
  int64_t hidden, heads;
  double eps, dropout, attention_dropout;
  bool residual_after_norm;
};

// base ** [first, first + step, ...]
TensorId powers(ForwardBuilder& b, std::string_view arange_name, int64_t count) {
  const TensorId base = b.create("aten.full.default", {}, DType::float32);
  const TensorId exponents = b.create(arange_name, {count}, DType::int32);
  return b.opaque("aten.pow.Tensor_Tensor", {base, exponents}, {{{count}, DType::float32}}).front();
}

// What is added to the scores, further back being less: [batch * heads, 1, length].
TensorId alibi(ForwardBuilder& b, int64_t batch, int64_t heads, int64_t length) {
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  TensorId slopes = powers(b, "aten.arange.start", whole);
  if (whole != heads) slopes = b.cat({slopes, powers(b, "aten.arange.start_step", heads - whole)}, 0);
  slopes = b.unsqueeze(b.unsqueeze(slopes, 1), 2);
  const TensorId biases = b.mul(slopes, arange(b, length));
  return b
      .opaque("aten.repeat.default", {biases}, {{{batch * heads, 1, length}, DType::float32}},
              {{"repeats", Shape{batch, 1, 1}}})
      .front();
}

class BloomLayer {
 public:
  BloomLayer(ForwardBuilder& b, const BloomOptions& o)
      : b_(b),
        path_(b.path_of("")),
        o_(o),
        norm1_(b, "input_layernorm", o.hidden, o.eps),
        qkv_(b, "self_attention.query_key_value", o.hidden, 3 * o.hidden),
        out_(b, "self_attention.dense", o.hidden, o.hidden),
        norm2_(b, "post_attention_layernorm", o.hidden, o.eps),
        up_(b, "mlp.dense_h_to_4h", o.hidden, 4 * o.hidden),
        down_(b, "mlp.dense_4h_to_h", 4 * o.hidden, o.hidden) {}

  TensorId operator()(TensorId x, TensorId alibi, TensorId mask) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId normed = norm1_(x);
    x = attend(normed, o_.residual_after_norm ? normed : x, alibi, mask);
    const TensorId again = norm2_(x);
    return feed_forward(again, o_.residual_after_norm ? again : x);
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x, TensorId residual, TensorId alibi, TensorId mask) const {
    const Scope scope(b_, "self_attention");
    const int64_t batch = b_.extent(x, 0);
    const int64_t length = b_.extent(x, 1);
    const int64_t head = o_.hidden / o_.heads;
    const TensorId fused = b_.view(qkv_(x), {batch, length, o_.heads, 3, head});
    TensorId parts[3];
    for (int64_t i = 0; i < 3; ++i) parts[i] = b_.transpose(b_.select(fused, 3, i), 1, 2);
    const Shape flat = {batch * o_.heads, -1, head};
    const TensorId query = b_.reshape(parts[0], flat);
    const TensorId key = b_.transpose(b_.reshape(parts[1], flat), -1, -2);
    const TensorId value = b_.reshape(parts[2], flat);
    const Attributes factors = {{"beta", 1.0}, {"alpha", 1 / std::sqrt(static_cast<double>(head))}};
    TensorId y = b_.opaque("aten.baddbmm.default", {alibi, query, key},
                           {{{batch * o_.heads, length, length}, b_.dtype(query)}}, factors)
                     .front();
    y = b_.add(b_.view(y, {batch, o_.heads, length, -1}), mask);
    y = b_.type_as(b_.softmax(b_.to_dtype(y, DType::float32), -1), query);
    y = Dropout(b_, "attention_dropout", o_.attention_dropout)(y);
    y = b_.bmm(b_.view(y, {batch * o_.heads, length, -1}), value);
    y = b_.permute(b_.view(y, {batch, o_.heads, length, head}), {0, 2, 1, 3});
    y = out_(b_.reshape(y, {batch, length, o_.hidden}));
    return b_.add(residual, b_.dropout(y, o_.dropout));
  }

  [[nodiscard]] TensorId feed_forward(TensorId x, TensorId residual) const {
    const Scope scope(b_, "mlp");
    x = up_(x);
    {
      const Scope activation(b_, "gelu_impl");
      x = b_.opaque("forerun.bloom_gelu.default", {x}, {{b_.shape(x), b_.dtype(x)}}).front();
    }
    return b_.add(residual, b_.dropout(down_(x), o_.dropout));
  }

  ForwardBuilder& b_;
  std::string path_;
  BloomOptions o_;
  LayerNorm norm1_;
  Linear qkv_, out_;
  LayerNorm norm2_;
  Linear up_, down_;
};

bool bloom_makes_sense(ForwardBuilder& b, const Configuration& c) {
  return within(b, c, {"batch", "length", "vocab", "hidden", "heads"}) && within(b, c, {"layers"}, 1, kMostLayers) &&
         heads_divide(b, c.integer("heads"), c.integer("hidden")) && is_dropout(b, c.real("dropout")) &&
         is_dropout(b, c.real("attention_dropout"));
}

void build_bloom(ForwardBuilder& b, const Configuration& c) {
  if (!bloom_makes_sense(b, c)) return;
  const BloomOptions o = {.hidden = c.integer("hidden"),
                          .heads = c.integer("heads"),
                          .eps = c.real("eps"),
                          .dropout = c.real("dropout"),
                          .attention_dropout = c.real("attention_dropout"),
                          .residual_after_norm = c.flag("residual_after_norm")};
  const int64_t batch = c.integer("batch");
  const int64_t length = c.integer("length");
  const TensorId tokens = token_input(b, c);
  std::optional<Scope> model(std::in_place, b, "transformer");
  const Embedding words(b, "word_embeddings", c.integer("vocab"), o.hidden);
  const LayerNorm first_norm(b, "word_embeddings_layernorm", o.hidden, o.eps);
  std::vector<BloomLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("h.{}", i));
    layers.emplace_back(b, o);
  }
  const LayerNorm last_norm(b, "ln_f", o.hidden, o.eps);
  model.reset();
  std::optional<Linear> untied;
  if (!c.flag("tied")) untied.emplace(b, "lm_head", o.hidden, c.integer("vocab"), false);

  model.emplace(b, "transformer");
  TensorId x = first_norm(words(tokens));
  const TensorId biases = alibi(b, batch, o.heads, length);
  const TensorId mask = added_mask(b, seen_keys(b, {.batch = batch, .length = length}));
  for (const BloomLayer& layer : layers) x = layer(x, biases, mask);
  x = last_norm(x);
  model.reset();
  b.result(token_scores(b, x, untied, words));
}

}  // namespace

Family bloom_family() {
  return {.name = "bloom",
          .description = "BLOOM (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"hidden", 64, "width of the model"},
                                               {"layers", 2, "layers"},
                                               {"heads", 8, "attention heads"},
                                               {"eps", 1e-5, "epsilon of the norms"},
                                               {"attention_dropout", 0.0, "dropout in attention"},
                                               {"dropout", 0.0, "dropout elsewhere"},
                                               {"residual_after_norm", false, "residuals are taken behind the norms"},
                                               {"tied", true, "the head shares the embedding's weight"}},
                                              1, 2048, 250880),
          .build = build_bloom};
}

}  // namespace forerun::zoo
