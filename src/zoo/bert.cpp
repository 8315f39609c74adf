// BERT as the transformers library trains it: BertForMaskedLM (head mlm, the default), BertForSequenceClassification
// (head classifier) or the bare BertModel with its pooler (head none).
//
// Source: transformers 5, sdpa attention, no attention mask given (so none is made), absolute positions, one segment; with
// eager attention a mask of padding is given, as tokenizers make it.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "zoo/bert_layers.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

constexpr double kBertEps = 1e-12;

class BertEmbeddings {
 public:
  BertEmbeddings(ForwardBuilder& b, const Configuration& c)
      : b_(b),
        path_(b.path_of("embeddings")),
        words_(b, "embeddings.word_embeddings", c.integer("vocab"), c.integer("hidden"), 0),
        positions_(b, "embeddings.position_embeddings", c.integer("positions"), c.integer("hidden")),
        types_(b, "embeddings.token_type_embeddings", c.integer("types"), c.integer("hidden")),
        norm_(b, "embeddings.LayerNorm", c.integer("hidden"), kBertEps),
        dropout_(b, "embeddings.dropout", c.real("dropout")) {
    position_ids_ = b.buffer("embeddings.position_ids", {1, c.integer("positions")}, DType::int64);
    type_ids_ = b.buffer("embeddings.token_type_ids", {1, c.integer("positions")}, DType::int64);
  }

  [[nodiscard]] TensorId words() const { return words_.weight(); }

  TensorId operator()(TensorId tokens) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t batch = b_.extent(tokens, 0);
    const int64_t length = b_.extent(tokens, 1);
    const TensorId position = take_first(b_, position_ids_, 1, length);
    TensorId type = b_.gather(b_.expand(type_ids_, {1, -1}), 1, position);
    type = b_.expand(type, {batch, length});
    TensorId x = words_(tokens);
    x = b_.add(x, types_(type));
    x = b_.add(x, positions_(position));
    return dropout_(norm_(x));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  Embedding words_, positions_, types_;
  LayerNorm norm_;
  Dropout dropout_;
  TensorId position_ids_, type_ids_;
};

// BertOnlyMLMHead: a transformed hidden state against the word embeddings.
class MaskedLmHead {
 public:
  MaskedLmHead(ForwardBuilder& b, const Configuration& c, TensorId words)
      : b_(b),
        words_(words),
        bias_(b.parameter("cls.predictions.bias", {c.integer("vocab")})),
        dense_(b, "cls.predictions.transform.dense", c.integer("hidden"), c.integer("hidden")),
        norm_(b, "cls.predictions.transform.LayerNorm", c.integer("hidden"), kBertEps) {}

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, "cls.predictions");
    x = dense_(x);
    {
      const Scope activation(b_, "transform.transform_act_fn");
      x = b_.gelu(x);
    }
    x = norm_(x);
    const Scope decoder(b_, "decoder");
    return b_.linear(x, words_, bias_);
  }

 private:
  ForwardBuilder& b_;
  TensorId words_, bias_;
  Linear dense_;
  LayerNorm norm_;
};

bool bert_makes_sense(ForwardBuilder& b, const Configuration& c) {
  const std::string& head = c.text("head");
  if (head != "mlm" && head != "classifier" && head != "none") {
    b.fail(fmt::format("head is '{}'", head), "set head to mlm, classifier or none");
    return false;
  }
  if (!within(b, c, {"batch", "length", "vocab", "hidden", "heads", "intermediate", "positions", "types", "labels"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !heads_divide(b, c.integer("heads"), c.integer("hidden")) ||
      !is_dropout(b, c.real("dropout")) || !is_attention(b, c)) {
    return false;
  }
  return fits_positions(b, c);
}

void build_bert(ForwardBuilder& b, const Configuration& c) {
  if (!bert_makes_sense(b, c)) return;
  const BertSizes sizes = {.hidden = c.integer("hidden"),
                           .heads = c.integer("heads"),
                           .intermediate = c.integer("intermediate"),
                           .dropout = c.real("dropout"),
                           .attention_dropout = c.real("dropout"),
                           .eps = kBertEps};
  const bool masked_lm = c.text("head") == "mlm";
  const bool bare = c.text("head") == "none";
  const TensorId tokens = token_input(b, c);
  std::optional<TensorId> mask;
  if (is_eager(c)) mask = b.input("mask", {c.integer("batch"), c.integer("length")}, DType::int64);
  std::optional<BertEmbeddings> embeddings;
  std::vector<BertLayer> layers;
  std::optional<Linear> pooler, classifier;
  std::string pooler_path;
  {
    const Scope scope(b, bare ? "" : "bert");
    embeddings.emplace(b, c);
    for (int64_t i = 0; i < c.integer("layers"); ++i) {
      const Scope layer(b, fmt::format("encoder.layer.{}", i));
      layers.emplace_back(b, sizes);
    }
    pooler_path = b.path_of("pooler");
    if (!masked_lm) pooler.emplace(b, "pooler.dense", sizes.hidden, sizes.hidden);
  }
  std::optional<MaskedLmHead> lm_head;
  if (masked_lm) lm_head.emplace(b, c, embeddings->words());
  if (!masked_lm && !bare) classifier.emplace(b, "classifier", sizes.hidden, c.integer("labels"));

  TensorId x = (*embeddings)(tokens);
  if (mask) mask = padding_mask(b, *mask);
  for (const BertLayer& layer : layers) x = layer(x, mask);
  if (lm_head) return b.result((*lm_head)(x));
  {
    const Scope scope(b, pooler_path, Scope::absolute);
    x = (*pooler)(b.select(x, 1, 0));
    const Scope activation(b, "activation");
    x = b.unary("aten.tanh.default", x);
  }
  if (classifier) x = (*classifier)(Dropout(b, "dropout", sizes.dropout)(x));
  b.result(x);
}

}  // namespace

Family bert_family() {
  return {.name = "bert",
          .description = "BERT (transformers): masked language model, classifier or bare encoder",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"hidden", 768, "width of the model"},
                                               {"layers", 12, "encoder layers"},
                                               {"heads", 12, "attention heads"},
                                               {"intermediate", 3072, "width of the feed-forward layers"},
                                               {"positions", 512, "longest sequence"},
                                               {"types", 2, "token types (segments)"},
                                               {"dropout", 0.1, "dropout, in attention too"},
                                               {"head", "mlm", "mlm, classifier or none (pooled output)"},
                                               attention_parameter(),
                                               {"labels", 2, "classes of the classifier"}},
                                              16, 128, 30522),
          .build = build_bert};
}

std::vector<NamedModel> bert_models() {
  return {{"bert_base", "bert", {}},
          {"bert_large", "bert", {{"hidden", 1024}, {"layers", 24}, {"heads", 16}, {"intermediate", 4096}}}};
}

}  // namespace forerun::zoo
