// DistilBERT's masked language model: BERT without segments and with fewer dropouts.
//
// Source: DistilBertForMaskedLM of transformers 5.22, sdpa attention, no attention mask given, head tied to the word
// embeddings.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

constexpr double kDistilbertEps = 1e-12;

struct DistilbertSizes {
  int64_t hidden, heads, intermediate;
  double dropout, attention_dropout;
  std::string activation;
};

class DistilbertLayer {
 public:
  DistilbertLayer(ForwardBuilder& b, const DistilbertSizes& s)
      : b_(b),
        path_(b.path_of("")),
        sizes_(s),
        query_(b, "attention.q_lin", s.hidden, s.hidden),
        key_(b, "attention.k_lin", s.hidden, s.hidden),
        value_(b, "attention.v_lin", s.hidden, s.hidden),
        out_(b, "attention.out_lin", s.hidden, s.hidden),
        attention_norm_(b, "sa_layer_norm", s.hidden, kDistilbertEps),
        up_(b, "ffn.lin1", s.hidden, s.intermediate),
        down_(b, "ffn.lin2", s.intermediate, s.hidden),
        output_norm_(b, "output_layer_norm", s.hidden, kDistilbertEps) {}

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = attention_norm_(b_.add(attend(x), x));
    return output_norm_(b_.add(feed_forward(x), x));
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x) const {
    const Scope scope(b_, "attention");
    const int64_t head = sizes_.hidden / sizes_.heads;
    const TensorId query = split_heads(b_, query_(x), head);
    const TensorId key = split_heads(b_, key_(x), head);
    const TensorId value = split_heads(b_, value_(x), head);
    const AttentionOptions options = {
        .mask = {}, .dropout = sizes_.attention_dropout, .scale = std::pow(static_cast<double>(head), -0.5)};
    return out_(merge_heads(b_, b_.attention(query, key, value, options)));
  }

  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    const Scope scope(b_, "ffn");
    x = up_(x);
    {
      const Scope activation(b_, "activation");
      x = activate(b_, sizes_.activation, x);
    }
    return Dropout(b_, "dropout", sizes_.dropout)(down_(x));
  }

  ForwardBuilder& b_;
  std::string path_;
  DistilbertSizes sizes_;
  Linear query_, key_, value_, out_;
  LayerNorm attention_norm_;
  Linear up_, down_;
  LayerNorm output_norm_;
};

bool distilbert_makes_sense(ForwardBuilder& b, const Configuration& c) {
  return within(b, c, {"batch", "length", "vocab", "hidden", "heads", "intermediate", "positions"}) &&
         within(b, c, {"layers"}, 1, kMostLayers) && heads_divide(b, c.integer("heads"), c.integer("hidden")) &&
         is_activation(b, c.text("activation")) && is_dropout(b, c.real("dropout")) &&
         is_dropout(b, c.real("attention_dropout")) && fits_positions(b, c);
}

void build_distilbert(ForwardBuilder& b, const Configuration& c) {
  if (!distilbert_makes_sense(b, c)) return;
  const DistilbertSizes sizes = {.hidden = c.integer("hidden"),
                                 .heads = c.integer("heads"),
                                 .intermediate = c.integer("intermediate"),
                                 .dropout = c.real("dropout"),
                                 .attention_dropout = c.real("attention_dropout"),
                                 .activation = c.text("activation")};
  const TensorId tokens = token_input(b, c);
  const Embedding words(b, "distilbert.embeddings.word_embeddings", c.integer("vocab"), sizes.hidden);
  const Embedding positions(b, "distilbert.embeddings.position_embeddings", c.integer("positions"), sizes.hidden);
  const LayerNorm embedding_norm(b, "distilbert.embeddings.LayerNorm", sizes.hidden, kDistilbertEps);
  const TensorId position_ids =
      b.buffer("distilbert.embeddings.position_ids", {1, c.integer("positions")}, DType::int64);
  std::vector<DistilbertLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("distilbert.transformer.layer.{}", i));
    layers.emplace_back(b, sizes);
  }
  const Linear transform(b, "vocab_transform", sizes.hidden, sizes.hidden);
  const LayerNorm norm(b, "vocab_layer_norm", sizes.hidden, kDistilbertEps);
  const TensorId bias = b.parameter("vocab_projector.bias", {c.integer("vocab")});

  TensorId x;
  {
    const Scope scope(b, "distilbert.embeddings");
    x = words(tokens);
    x = b.add(x, positions(take_first(b, position_ids, 1, c.integer("length"))));
    x = Dropout(b, "dropout", sizes.dropout)(embedding_norm(x));
  }
  for (const DistilbertLayer& layer : layers) x = layer(x);
  x = transform(x);
  {
    const Scope scope(b, "activation");
    x = activate(b, sizes.activation, x);
  }
  x = norm(x);
  const Scope scope(b, "vocab_projector");
  b.result(b.linear(x, words.weight(), bias));
}

}  // namespace

Family distilbert_family() {
  return {.name = "distilbert",
          .description = "DistilBERT's masked language model (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"hidden", 768, "width of the model"},
                                               {"layers", 6, "encoder layers"},
                                               {"heads", 12, "attention heads"},
                                               {"intermediate", 3072, "width of the feed-forward layers"},
                                               {"positions", 512, "longest sequence"},
                                               {"activation", "gelu", "activation of the feed-forward layers"},
                                               {"dropout", 0.1, "dropout outside attention"},
                                               {"attention_dropout", 0.1, "dropout in attention"}},
                                              16, 128, 30522),
          .build = build_distilbert};
}

}  // namespace forerun::zoo
