// GPT-2 with its language-model head tied to the token embedding.
//
// Source: GPT2LMHeadModel of transformers 5, causal sdpa attention without a mask or eager attention with one. Left out: the key-value cache, which
// training does not use (use_cache=False).
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

// transformers' Conv1D: a linear layer whose weight is [in, out].
class Conv1d {
 public:
  Conv1d(ForwardBuilder& b, std::string_view name, int64_t in, int64_t out) : b_(b), path_(b.path_of(name)), out_(out) {
    const Scope scope(b, name);
    weight_ = b.parameter("weight", {in, out});
    bias_ = b.parameter("bias", {out});
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId product = b_.addmm(bias_, b_.view(x, {-1, b_.extent(x, -1)}), weight_);
    return b_.view(product, {b_.extent(x, 0), b_.extent(x, 1), out_});
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t out_;
  TensorId weight_, bias_;
};

class Gpt2Block {
 public:
  Gpt2Block(ForwardBuilder& b, int64_t width, int64_t heads, int64_t inner, double dropout)
      : b_(b),
        path_(b.path_of("")),
        width_(width),
        heads_(heads),
        p_(dropout),
        norm1_(b, "ln_1", width),
        qkv_(b, "attn.c_attn", width, 3 * width),
        attention_out_(b, "attn.c_proj", width, width),
        norm2_(b, "ln_2", width),
        fc_(b, "mlp.c_fc", width, inner),
        mlp_out_(b, "mlp.c_proj", inner, width) {}

  // `mask`: what eager attention adds to its scores; none: sdpa.
  TensorId operator()(TensorId x, std::optional<TensorId> mask) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.add(attend(norm1_(x), mask), x);
    return b_.add(x, feed_forward(norm2_(x)));
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x, std::optional<TensorId> mask) const {
    const Scope scope(b_, "attn");
    const int64_t head = width_ / heads_;
    std::vector<TensorId> parts = b_.split_every(qkv_(x), width_, 2);
    parts.resize(3, parts.front());
    const TensorId key = split_heads(b_, parts[1], head);
    const TensorId value = split_heads(b_, parts[2], head);
    const TensorId query = split_heads(b_, parts[0], head);
    const double scale = std::pow(static_cast<double>(head), -0.5);
    const AttentionOptions sdpa = {.mask = {}, .dropout = p_, .causal = b_.extent(x, 1) > 1, .scale = scale};
    const TensorId heads =
        mask ? eager_attention(b_, query, key, value, {.scale = scale, .dropout = p_, .addends = {*mask}})
             : b_.attention(query, key, value, sdpa);
    const TensorId y = attention_out_(merge_heads(b_, heads));
    return Dropout(b_, "resid_dropout", p_)(y);
  }

  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    const Scope scope(b_, "mlp");
    x = fc_(x);
    {
      const Scope activation(b_, "act");
      x = activate(b_, "gelu_new", x);
    }
    return Dropout(b_, "dropout", p_)(mlp_out_(x));
  }

  ForwardBuilder& b_;
  std::string path_;
  int64_t width_, heads_;
  double p_;
  LayerNorm norm1_;
  Conv1d qkv_, attention_out_;
  LayerNorm norm2_;
  Conv1d fc_, mlp_out_;
};

bool gpt2_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "length", "vocab", "width", "heads", "positions"}) || !within(b, c, {"inner"}, 0) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !heads_divide(b, c.integer("heads"), c.integer("width")) ||
      !is_dropout(b, c.real("dropout")) || !is_attention(b, c)) {
    return false;
  }
  return fits_positions(b, c);
}

void build_gpt2(ForwardBuilder& b, const Configuration& c) {
  if (!gpt2_makes_sense(b, c)) return;
  const int64_t width = c.integer("width");
  const int64_t inner = c.integer("inner") > 0 ? c.integer("inner") : 4 * width;
  const int64_t length = c.integer("length");
  const TensorId input = token_input(b, c);
  const Embedding words(b, "transformer.wte", c.integer("vocab"), width);
  const Embedding positions(b, "transformer.wpe", c.integer("positions"), width);
  std::vector<Gpt2Block> blocks;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("transformer.h.{}", i));
    blocks.emplace_back(b, width, c.integer("heads"), inner, c.real("dropout"));
  }
  const LayerNorm norm(b, "transformer.ln_f", width);

  TensorId x;
  {
    const Scope scope(b, "transformer");
    x = words(b.view(input, {-1, length}));
    const TensorId numbers = position_numbers(b, length);
    x = b.add(x, positions(numbers));
    std::optional<TensorId> mask;
    if (is_eager(c)) {
      mask = causal_mask(b, c.integer("batch"), length);
    } else {
      look_for_packed_sequences(b, numbers, c.integer("batch"));
    }
    x = Dropout(b, "drop", c.real("dropout"))(x);
    for (const Gpt2Block& block : blocks) x = block(x, mask);
    x = b.view(norm(x), {-1, length, width});
  }
  b.result(token_scores(b, x, std::nullopt, words));
}

NamedModel model(const std::string& name, int64_t width, int64_t layers, int64_t heads) {
  return {name, "gpt2", {{"width", width}, {"layers", layers}, {"heads", heads}}};
}

}  // namespace

Family gpt2_family() {
  return {
      .name = "gpt2",
      .description = "GPT-2 language model (transformers)",
      .input = InputKind::tokens,
      .flavour = "hf",
      .parameters = with_token_parameters({{"width", 768, "width of the model"},
                                           {"layers", 12, "blocks"},
                                           {"heads", 12, "attention heads"},
                                           {"inner", 0, "width of the feed-forward layers; 0: four times the width"},
                                           {"positions", 1024, "longest sequence"},
                                           {"dropout", 0.1, "dropout, in attention too"},
                                           attention_parameter()},
                                          4, 1024, 50257),
      .build = build_gpt2};
}

std::vector<NamedModel> gpt2_models() {
  return {
      model("gpt2_small", 768, 12, 12),
      model("gpt2_medium", 1024, 24, 16),
      model("gpt2_large", 1280, 36, 20),
      model("gpt2_xl", 1600, 48, 25),
      {"gpt3_175b", "gpt2", {{"width", 12288}, {"layers", 96}, {"heads", 96}, {"positions", 2048}, {"length", 2048}}}};
}

}  // namespace forerun::zoo
