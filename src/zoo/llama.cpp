// Llama: RMS norms, rotary positions, grouped-query attention, SwiGLU.
//
// Source: LlamaForCausalLM of transformers 5, causal sdpa attention without a mask, float32 parameters. Left out: the
// key-value cache (use_cache=False), rotary scaling variants, biases.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/attention_layers.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct LlamaSizes {
  int64_t hidden;
  int64_t intermediate;
  int64_t heads;
  int64_t kv_heads;
  int64_t head;  // width of one
};

struct Rotary {
  TensorId cosine, sine;  // [1, length, head]
};

// The tables of a forward pass, from the inverse frequencies, in the type of the hidden states.
Rotary rotary_tables(ForwardBuilder& b, TensorId frequencies, TensorId positions, TensorId hidden) {
  const Scope scope(b, "rotary_emb");
  TensorId rows = b.unsqueeze(b.unsqueeze(frequencies, 0), 2);
  rows = b.expand(rows, {1, -1, 1});
  const TensorId columns = b.to_dtype(b.unsqueeze(positions, 1), DType::float32);
  const TensorId angles = b.transpose(b.matmul(rows, columns, false), 1, 2);
  const TensorId both = b.cat({angles, angles}, -1);
  Rotary tables;
  tables.cosine = b.type_as(b.mul_scalar(b.unary("aten.cos.default", both), 1.0), hidden);
  tables.sine = b.type_as(b.mul_scalar(b.unary("aten.sin.default", both), 1.0), hidden);
  return tables;
}

TensorId rotate(ForwardBuilder& b, TensorId x, TensorId cosine, TensorId sine) {
  const int64_t half = b.extent(x, -1) / 2;
  const TensorId scaled = b.mul(x, cosine);
  const TensorId first = b.slice(x, 3, 0, half);
  const TensorId second = b.slice(x, 3, half, kToEnd);
  const TensorId negated = b.unary("aten.neg.default", second);
  const TensorId turned = b.mul(b.cat({negated, first}, -1), sine);
  return b.add(scaled, turned);
}

class LlamaLayer {
 public:
  LlamaLayer(ForwardBuilder& b, const LlamaSizes& s, double eps)
      : b_(b),
        path_(b.path_of("")),
        sizes_(s),
        query_(b, "self_attn.q_proj", s.hidden, s.heads * s.head, false),
        key_(b, "self_attn.k_proj", s.hidden, s.kv_heads * s.head, false),
        value_(b, "self_attn.v_proj", s.hidden, s.kv_heads * s.head, false),
        out_(b, "self_attn.o_proj", s.heads * s.head, s.hidden, false),
        gate_(b, "mlp.gate_proj", s.hidden, s.intermediate, false),
        up_(b, "mlp.up_proj", s.hidden, s.intermediate, false),
        down_(b, "mlp.down_proj", s.intermediate, s.hidden, false),
        norm1_(b, "input_layernorm", s.hidden, eps),
        norm2_(b, "post_attention_layernorm", s.hidden, eps) {}

  TensorId operator()(TensorId x, const Rotary& rotary) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.add(x, attend(norm1_(x), rotary));
    return b_.add(x, feed_forward(norm2_(x)));
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x, const Rotary& rotary) const {
    const Scope scope(b_, "self_attn");
    TensorId query = split_heads(b_, query_(x), sizes_.head);
    TensorId key = split_heads(b_, key_(x), sizes_.head);
    const TensorId value = split_heads(b_, value_(x), sizes_.head);
    const TensorId cosine = b_.unsqueeze(rotary.cosine, 1);
    const TensorId sine = b_.unsqueeze(rotary.sine, 1);
    query = rotate(b_, query, cosine, sine);
    key = rotate(b_, key, cosine, sine);
    const AttentionOptions options = {.mask = {},
                                      .causal = b_.extent(x, 1) > 1,
                                      .scale = std::pow(static_cast<double>(sizes_.head), -0.5),
                                      .grouped_query = sizes_.kv_heads != sizes_.heads};
    return out_(merge_heads(b_, b_.attention(query, key, value, options)));
  }

  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    const Scope scope(b_, "mlp");
    TensorId gate = gate_(x);
    {
      const Scope activation(b_, "act_fn");
      gate = b_.unary("aten.silu.default", gate);
    }
    const TensorId up = up_(x);
    return down_(b_.mul(gate, up));
  }

  ForwardBuilder& b_;
  std::string path_;
  LlamaSizes sizes_;
  Linear query_, key_, value_, out_, gate_, up_, down_;
  RmsNorm norm1_, norm2_;
};

bool llama_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "length", "vocab", "hidden", "intermediate", "heads", "kv_heads"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !heads_divide(b, c.integer("heads"), c.integer("hidden"))) {
    return false;
  }
  if (c.integer("heads") % c.integer("kv_heads") != 0) {
    b.fail(fmt::format("{} key-value heads do not divide {} heads", c.integer("kv_heads"), c.integer("heads")),
           "choose kv_heads that divide heads");
    return false;
  }
  if (c.integer("hidden") / c.integer("heads") % 2 == 0) return true;
  b.fail("rotary positions need heads of an even width", "choose other hidden or heads");
  return false;
}

void build_llama(ForwardBuilder& b, const Configuration& c) {
  if (!llama_makes_sense(b, c)) return;
  const LlamaSizes sizes = {c.integer("hidden"), c.integer("intermediate"), c.integer("heads"), c.integer("kv_heads"),
                            c.integer("hidden") / c.integer("heads")};
  const double eps = c.real("eps");
  const TensorId tokens = token_input(b, c);
  const Embedding embedding(b, "model.embed_tokens", c.integer("vocab"), sizes.hidden);
  std::vector<LlamaLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("model.layers.{}", i));
    layers.emplace_back(b, sizes, eps);
  }
  const RmsNorm norm(b, "model.norm", sizes.hidden, eps);
  const TensorId frequencies = b.buffer("model.rotary_emb.inv_freq", {sizes.head / 2});
  b.buffer("model.rotary_emb.original_inv_freq", {sizes.head / 2});
  std::optional<Linear> head;
  if (!c.flag("tied")) head.emplace(b, "lm_head", sizes.hidden, c.integer("vocab"), false);

  TensorId x;
  {
    const Scope scope(b, "model");
    x = embedding(tokens);
    const TensorId numbers = position_numbers(b, c.integer("length"));
    look_for_packed_sequences(b, numbers, c.integer("batch"));
    const Rotary rotary = rotary_tables(b, frequencies, numbers, x);
    for (const LlamaLayer& layer : layers) x = layer(x, rotary);
    x = norm(x);
  }
  b.result(token_scores(b, x, head, embedding));
}

}  // namespace

Family llama_family() {
  return {.name = "llama",
          .description = "Llama language model (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"hidden", 4096, "width of the model"},
                                               {"intermediate", 11008, "width of the feed-forward layers"},
                                               {"layers", 32, "decoder layers"},
                                               {"heads", 32, "attention heads"},
                                               {"kv_heads", 32, "key-value heads"},
                                               {"eps", 1e-6, "epsilon of the norms"},
                                               {"tied", false, "the head shares the embedding's weight"}},
                                              1, 2048, 32000),
          .build = build_llama};
}

std::vector<NamedModel> llama_models() {
  return {{"llama2_7b", "llama", {{"eps", 1e-5}}},
          {"llama2_13b",
           "llama",
           {{"hidden", 5120}, {"intermediate", 13824}, {"layers", 40}, {"heads", 40}, {"kv_heads", 40}, {"eps", 1e-5}}},
          {"llama3_8b", "llama", {{"intermediate", 14336}, {"kv_heads", 8}, {"vocab", 128256}, {"eps", 1e-5}}},
          {"tinyllama_1b",
           "llama",
           {{"hidden", 2048}, {"intermediate", 5632}, {"layers", 22}, {"kv_heads", 4}, {"eps", 1e-5}}}};
}

}  // namespace forerun::zoo
