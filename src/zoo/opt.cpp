// OPT: layer norms before or after, learned positions, ReLU.
//
// Source: OPTForCausalLM of transformers 5.22, causal sdpa attention, key-value cache off. Layers are never dropped
// (layerdrop 0), but the library draws and reads a number for each all the same.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct OptOptions {
  int64_t hidden, intermediate, heads;
  double attention_dropout, dropout;
  bool bias, norm_before;
  std::string activation;
};

class OptLayer {
 public:
  OptLayer(ForwardBuilder& b, const OptOptions& o)
      : b_(b),
        path_(b.path_of("")),
        o_(o),
        key_(b, "self_attn.k_proj", o.hidden, o.hidden, o.bias),
        value_(b, "self_attn.v_proj", o.hidden, o.hidden, o.bias),
        query_(b, "self_attn.q_proj", o.hidden, o.hidden, o.bias),
        out_(b, "self_attn.out_proj", o.hidden, o.hidden, o.bias),
        attention_norm_(b, "self_attn_layer_norm", o.hidden),
        up_(b, "fc1", o.hidden, o.intermediate, o.bias),
        down_(b, "fc2", o.intermediate, o.hidden, o.bias),
        final_norm_(b, "final_layer_norm", o.hidden) {}

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    TensorId y = attend(o_.norm_before ? attention_norm_(x) : x);
    if (o_.dropout > 0) y = b_.dropout(y, o_.dropout);
    x = b_.add(x, y);
    if (!o_.norm_before) x = attention_norm_(x);
    const Shape shape = b_.shape(x);
    x = b_.reshape(x, {-1, o_.hidden});
    y = up_(o_.norm_before ? final_norm_(x) : x);
    {
      const Scope activation(b_, "activation_fn");
      y = activate(b_, o_.activation, y);
    }
    y = down_(y);
    if (o_.dropout > 0) y = b_.dropout(y, o_.dropout);
    x = b_.view(b_.add(x, y), shape);
    return o_.norm_before ? x : final_norm_(x);
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x) const {
    const Scope scope(b_, "self_attn");
    const int64_t head = o_.hidden / o_.heads;
    const double scale = std::pow(static_cast<double>(head), -0.5);
    const TensorId query = split_heads(b_, b_.mul_scalar(query_(x), scale), head);
    TensorId key = key_(x);
    TensorId value = value_(x);
    key = split_heads(b_, key, head);
    value = split_heads(b_, value, head);
    const AttentionOptions options = {
        .mask = {}, .dropout = o_.attention_dropout, .causal = b_.extent(x, 1) > 1, .scale = 1.0};
    return out_(merge_heads(b_, b_.attention(query, key, value, options)));
  }

  ForwardBuilder& b_;
  std::string path_;
  OptOptions o_;
  Linear key_, value_, query_, out_;
  LayerNorm attention_norm_;
  Linear up_, down_;
  LayerNorm final_norm_;
};

// Position numbers as OPT counts them, from a mask of ones.
TensorId counted_positions(ForwardBuilder& b, int64_t batch, int64_t length) {
  const TensorId ones = b.create("aten.ones.default", {batch, length}, DType::float32);
  const TensorId sums = b.unary("aten.cumsum.default", ones, {{"dim", int64_t{1}}});
  const TensorId numbers = b.unary("aten.sub.Tensor", b.mul(sums, ones), {{"other", int64_t{1}}});
  return alias(b, b.to_dtype(numbers, DType::int64));
}

bool opt_makes_sense(ForwardBuilder& b, const Configuration& c) {
  return within(b, c, {"batch", "length", "vocab", "hidden", "intermediate", "heads", "positions", "embedding"}) &&
         within(b, c, {"layers"}, 1, kMostLayers) && heads_divide(b, c.integer("heads"), c.integer("hidden")) &&
         is_activation(b, c.text("activation")) && is_dropout(b, c.real("dropout")) &&
         is_dropout(b, c.real("attention_dropout")) && fits_positions(b, c);
}

void build_opt(ForwardBuilder& b, const Configuration& c) {
  if (!opt_makes_sense(b, c)) return;
  constexpr int64_t kOffset = 2;  // rows of the position table that no position uses
  const OptOptions o = {.hidden = c.integer("hidden"),
                        .intermediate = c.integer("intermediate"),
                        .heads = c.integer("heads"),
                        .attention_dropout = c.real("attention_dropout"),
                        .dropout = c.real("dropout"),
                        .bias = c.flag("bias"),
                        .norm_before = c.flag("norm_before"),
                        .activation = c.text("activation")};
  const int64_t width = c.integer("embedding");
  const TensorId tokens = token_input(b, c);
  std::optional<Scope> decoder(std::in_place, b, "model.decoder");
  const Embedding words(b, "embed_tokens", c.integer("vocab"), width);
  const Embedding positions(b, "embed_positions", c.integer("positions") + kOffset, o.hidden);
  std::optional<Linear> project_out, project_in;
  if (width != o.hidden) {
    project_out.emplace(b, "project_out", o.hidden, width, false);
    project_in.emplace(b, "project_in", width, o.hidden, false);
  }
  std::optional<LayerNorm> norm;
  if (o.norm_before && c.flag("final_norm")) norm.emplace(b, "final_layer_norm", o.hidden);
  std::vector<OptLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("layers.{}", i));
    layers.emplace_back(b, o);
  }
  decoder.reset();
  std::optional<Linear> head;
  if (!c.flag("tied")) head.emplace(b, "lm_head", width, c.integer("vocab"), false);

  decoder.emplace(b, "model.decoder");
  TensorId x = words(b.view(tokens, {-1, c.integer("length")}));
  const TensorId numbers = counted_positions(b, c.integer("batch"), c.integer("length"));
  TensorId placed;
  {
    const Scope scope(b, "embed_positions");
    placed = b.unary("aten.add.Tensor", numbers, {{"other", kOffset}});
  }
  placed = positions(placed);
  if (project_in) x = (*project_in)(x);
  x = b.add(x, placed);
  for (const OptLayer& layer : layers) {
    draw_for_layer_drop(b);
    x = layer(x);
  }
  if (norm) x = (*norm)(x);
  if (project_out) x = (*project_out)(x);
  decoder.reset();
  b.result(token_scores(b, x, head, words));
}

}  // namespace

Family opt_family() {
  return {.name = "opt",
          .description = "OPT (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"hidden", 768, "width of the model"},
                                               {"intermediate", 3072, "width of the feed-forward layers"},
                                               {"layers", 12, "layers"},
                                               {"heads", 12, "attention heads"},
                                               {"positions", 2048, "longest sequence"},
                                               {"embedding", 768, "width of the embedding"},
                                               {"activation", "relu", "activation of the feed-forward layers"},
                                               {"attention_dropout", 0.0, "dropout in attention"},
                                               {"dropout", 0.1, "dropout elsewhere"},
                                               {"bias", true, "linear layers have biases"},
                                               {"norm_before", true, "norms stand before attention and feed-forward"},
                                               {"final_norm", true, "a norm behind the last layer"},
                                               {"tied", true, "the head shares the embedding's weight"}},
                                              1, 2048, 50272),
          .build = build_opt};
}

}  // namespace forerun::zoo
