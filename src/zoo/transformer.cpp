// nn.Transformer as an encoder-decoder language model: one embedding feeds both sides, a linear layer gives the logits.
//
// Source: torch.nn.Transformer in training mode (post-norm layers, ReLU, batch first, no masks), where attention runs
// as nn.MultiheadAttention without weights. Left out: positional encodings and masks, which nn.Transformer does not
// add.
#include <string>

#include "zoo/attention_layers.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct TransformerSizes {
  int64_t width;
  int64_t heads;
  int64_t feed_forward;
  double dropout;
};

// The layers of both kinds in PyTorch's registration order; an encoder layer has no cross attention.
class TransformerLayer {
 public:
  TransformerLayer(ForwardBuilder& b, const TransformerSizes& sizes, bool decodes)
      : b_(b), path_(b.path_of("")), decodes_(decodes), p_(sizes.dropout) {
    const MultiheadOptions options = {.dropout = sizes.dropout, .batch_first = true};
    attention_.emplace_back(b, "self_attn", sizes.width, sizes.heads, options);
    if (decodes) attention_.emplace_back(b, "multihead_attn", sizes.width, sizes.heads, options);
    linear_.emplace_back(b, "linear1", sizes.width, sizes.feed_forward);
    linear_.emplace_back(b, "linear2", sizes.feed_forward, sizes.width);
    for (int i = 1; i <= (decodes ? 3 : 2); ++i) norm_.emplace_back(b, "norm" + std::to_string(i), sizes.width);
  }

  TensorId operator()(TensorId x, TensorId memory) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = norm_[0](b_.add(x, drop("dropout1", attention_[0].self(x))));
    if (decodes_) x = norm_[1](b_.add(x, drop("dropout2", attention_[1].cross(x, memory))));
    const TensorId inner = drop("dropout", b_.relu(linear_[0](x)));
    return norm_.back()(b_.add(x, drop(decodes_ ? "dropout3" : "dropout2", linear_[1](inner))));
  }

 private:
  [[nodiscard]] TensorId drop(std::string_view name, TensorId x) const { return Dropout(b_, name, p_)(x); }

  ForwardBuilder& b_;
  std::string path_;
  bool decodes_;
  double p_;
  std::vector<MultiheadAttention> attention_;
  std::vector<Linear> linear_;
  std::vector<LayerNorm> norm_;
};

// nn.TransformerEncoder or nn.TransformerDecoder: layers and a final norm.
class TransformerStack {
 public:
  TransformerStack(ForwardBuilder& b, std::string_view name, int64_t layers, const TransformerSizes& sizes,
                   bool decodes) {
    const Scope scope(b, name);
    for (int64_t i = 0; i < layers; ++i) {
      const Scope layer(b, "layers." + std::to_string(i));
      layers_.emplace_back(b, sizes, decodes);
    }
    norm_.emplace_back(b, "norm", sizes.width);
  }

  TensorId operator()(TensorId x, TensorId memory) const {
    for (const TransformerLayer& layer : layers_) x = layer(x, memory);
    return norm_.front()(x);
  }

 private:
  std::vector<TransformerLayer> layers_;
  std::vector<LayerNorm> norm_;
};

void build_transformer(ForwardBuilder& b, const Configuration& c) {
  const TransformerSizes sizes = {c.integer("d"), c.integer("heads"), c.integer("ff"), c.real("dropout")};
  if (!within(b, c, {"batch", "length", "vocab", "d", "heads", "ff"}) ||
      !within(b, c, {"enc", "dec"}, 0, kMostLayers) || !heads_divide(b, sizes.heads, sizes.width) ||
      !is_dropout(b, sizes.dropout)) {
    return;
  }
  const TensorId tokens = token_input(b, c);
  const Embedding embedding(b, "emb", c.integer("vocab"), sizes.width);
  std::vector<TransformerStack> stacks;
  {
    const Scope scope(b, "t");
    stacks.emplace_back(b, "encoder", c.integer("enc"), sizes, false);
    stacks.emplace_back(b, "decoder", c.integer("dec"), sizes, true);
  }
  const Linear out(b, "out", sizes.width, c.integer("vocab"));
  const TensorId x = embedding(tokens);
  const TensorId memory = stacks[0](x, x);
  b.result(out(stacks[1](x, memory)));
}

}  // namespace

Family transformer_family() {
  return {.name = "transformer",
          .description = "encoder-decoder language model around nn.Transformer",
          .input = InputKind::tokens,
          .parameters = with_token_parameters({{"d", 512, "width of the model"},
                                               {"heads", 8, "attention heads"},
                                               {"enc", 6, "encoder layers"},
                                               {"dec", 6, "decoder layers"},
                                               {"ff", 2048, "width of the feed-forward layers"},
                                               {"dropout", 0.1, "dropout, in attention too"}},
                                              32, 128, 32000),
          .build = build_transformer};
}

std::vector<NamedModel> transformer_models() {
  return {{"transformer_base", "transformer", {{"vocab", 37000}}},
          {"transformer_big", "transformer", {{"d", 1024}, {"heads", 16}, {"ff", 4096}, {"vocab", 37000}}}};
}

}  // namespace forerun::zoo
