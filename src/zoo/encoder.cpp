// Masked language models of BERT's line as config.json files describe them: BERT, RoBERTa (and XLM-RoBERTa, CamemBERT),
// ELECTRA's generator.
//
// Source: *ForMaskedLM of transformers 5.22, sdpa attention, no attention mask given, one segment, head tied to the word
// embeddings. What differs: where positions come from, an embedding narrower than the model, and the names in the head.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "zoo/bert_layers.h"
#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

enum class EncoderKind : uint8_t { bert, roberta, xlm_roberta, electra };

bool is_roberta(EncoderKind kind) { return kind == EncoderKind::roberta || kind == EncoderKind::xlm_roberta; }

// What the modules of a kind are called.
struct EncoderNames {
  const char* prefix;
  const char* dense;
  const char* activation;
  const char* norm;
  const char* head;
};

EncoderNames names_of(EncoderKind kind) {
  switch (kind) {
    case EncoderKind::bert: break;
    case EncoderKind::roberta:
    case EncoderKind::xlm_roberta:
      return {"roberta", "lm_head.dense", "lm_head", "lm_head.layer_norm", "lm_head.decoder"};
    case EncoderKind::electra:
      return {"electra", "generator_predictions.dense", "generator_predictions.activation",
              "generator_predictions.LayerNorm", "generator_lm_head"};
  }
  return {"bert", "cls.predictions.transform.dense", "cls.predictions.transform.transform_act_fn",
          "cls.predictions.transform.LayerNorm", "cls.predictions.decoder"};
}

std::optional<EncoderKind> encoder_kind(ForwardBuilder& b, const Configuration& c) {
  const std::string& kind = c.text("kind");
  if (kind == "bert") return EncoderKind::bert;
  if (kind == "roberta") return EncoderKind::roberta;
  if (kind == "xlm_roberta") return EncoderKind::xlm_roberta;
  if (kind == "electra") return EncoderKind::electra;
  b.fail(fmt::format("kind is '{}'", kind), "known: bert, roberta, xlm_roberta, electra");
  return std::nullopt;
}

class EncoderEmbeddings {
 public:
  EncoderEmbeddings(ForwardBuilder& b, const Configuration& c, EncoderKind kind, int64_t width, double eps)
      : b_(b),
        path_(b.path_of("embeddings")),
        kind_(kind),
        words_(b, "embeddings.word_embeddings", c.integer("vocab"), width),
        dropout_(b, "embeddings.dropout", c.real("dropout")) {
    const auto add_positions = [&] {
      positions_.emplace(b, "embeddings.position_embeddings", c.integer("positions"), width);
    };
    if (!is_roberta(kind)) add_positions();
    types_.emplace(b, "embeddings.token_type_embeddings", c.integer("types"), width);
    norm_.emplace(b, "embeddings.LayerNorm", width, eps);
    if (is_roberta(kind)) add_positions();  // which registers them last
    position_ids_ = b.buffer("embeddings.position_ids", {1, c.integer("positions")}, DType::int64);
    type_ids_ = b.buffer("embeddings.token_type_ids", {1, c.integer("positions")}, DType::int64);
  }

  [[nodiscard]] TensorId words() const { return words_.weight(); }

  TensorId operator()(TensorId tokens) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t batch = b_.extent(tokens, 0);
    const int64_t length = b_.extent(tokens, 1);
    const bool counted = is_roberta(kind_);
    const TensorId position = counted ? counted_past_padding(tokens) : take_first(b_, position_ids_, 1, length);
    TensorId type = b_.gather(b_.expand(type_ids_, {counted ? batch : 1, -1}), 1, position);
    type = b_.expand(type, {batch, length});
    TensorId x = words_(tokens);
    x = b_.add(x, (*types_)(type));
    x = b_.add(x, (*positions_)(position));
    return dropout_((*norm_)(x));
  }

 private:
  // RoBERTa's positions start behind the padding token's number, and padding has none.
  [[nodiscard]] TensorId counted_past_padding(TensorId tokens) const {
    const TensorId kept = b_.to_dtype(b_.unary("aten.ne.Scalar", tokens, {{"other", int64_t{1}}}), DType::int32);
    const TensorId sums =
        b_.opaque("aten.cumsum.default", {kept}, {{b_.shape(tokens), DType::int64}}, {{"dim", int64_t{1}}}).front();
    const TensorId count = b_.unary("aten.add.Tensor", b_.to_dtype(sums, DType::int32), {{"other", int64_t{0}}});
    const TensorId numbers = b_.to_dtype(b_.mul(count, kept), DType::int64);
    return b_.unary("aten.add.Tensor", numbers, {{"other", int64_t{1}}});
  }

  ForwardBuilder& b_;
  std::string path_;
  EncoderKind kind_;
  Embedding words_;
  std::optional<Embedding> positions_, types_;
  std::optional<LayerNorm> norm_;
  Dropout dropout_;
  TensorId position_ids_, type_ids_;
};

bool encoder_makes_sense(ForwardBuilder& b, const Configuration& c) {
  return within(b, c, {"batch", "length", "vocab", "hidden", "heads", "intermediate", "positions", "types"}) &&
         within(b, c, {"embedding"}, 0) && within(b, c, {"layers"}, 1, kMostLayers) &&
         heads_divide(b, c.integer("heads"), c.integer("hidden")) && is_activation(b, c.text("activation")) &&
         is_dropout(b, c.real("dropout")) && is_dropout(b, c.real("attention_dropout")) && fits_positions(b, c);
}

void build_encoder(ForwardBuilder& b, const Configuration& c) {
  if (!encoder_makes_sense(b, c)) return;
  const std::optional<EncoderKind> kind = encoder_kind(b, c);
  if (!kind) return;
  const EncoderNames names = names_of(*kind);
  const BertSizes sizes = {.hidden = c.integer("hidden"),
                           .heads = c.integer("heads"),
                           .intermediate = c.integer("intermediate"),
                           .dropout = c.real("dropout"),
                           .attention_dropout = c.real("attention_dropout"),
                           .eps = c.real("eps"),
                           .activation = c.text("activation")};
  const int64_t width = c.integer("embedding") > 0 ? c.integer("embedding") : sizes.hidden;
  const TensorId tokens = token_input(b, c);
  std::optional<Linear> dense;
  std::optional<LayerNorm> norm;
  TensorId bias;
  const auto add_bias = [&] { bias = b.parameter(std::string(names.head) + ".bias", {c.integer("vocab")}); };
  const auto add_head = [&] {  // in the order in which the heads register what they have, ELECTRA's being another
    const bool electra = *kind == EncoderKind::electra;
    if (!electra) add_bias();
    if (electra) norm.emplace(b, names.norm, width, sizes.eps);
    dense.emplace(b, names.dense, sizes.hidden, width);
    if (!electra) norm.emplace(b, names.norm, width, sizes.eps);
    if (electra) add_bias();
  };
  if (*kind == EncoderKind::xlm_roberta) add_head();  // which registers it first
  std::optional<EncoderEmbeddings> embeddings;
  std::optional<Linear> project;
  std::vector<BertLayer> layers;
  {
    const Scope scope(b, names.prefix);
    embeddings.emplace(b, c, *kind, width, sizes.eps);
    if (width != sizes.hidden) project.emplace(b, "embeddings_project", width, sizes.hidden);
    for (int64_t i = 0; i < c.integer("layers"); ++i) {
      const Scope layer(b, fmt::format("encoder.layer.{}", i));
      layers.emplace_back(b, sizes);
    }
  }
  if (*kind != EncoderKind::xlm_roberta) add_head();

  TensorId x = (*embeddings)(tokens);
  if (project) x = (*project)(x);
  for (const BertLayer& layer : layers) x = layer(x);
  x = (*dense)(x);
  {
    const Scope scope(b, names.activation);
    x = activate(b, *kind == EncoderKind::bert ? sizes.activation : "gelu", x);
  }
  x = (*norm)(x);
  const Scope scope(b, names.head);
  b.result(b.linear(x, embeddings->words(), bias));
}

}  // namespace

Family encoder_family() {
  return {.name = "encoder",
          .description = "masked language models of BERT's line (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"kind", "bert", "bert, roberta, xlm_roberta or electra"},
                                               {"hidden", 768, "width of the model"},
                                               {"embedding", 0, "width of the embedding; 0: that of the model"},
                                               {"layers", 12, "encoder layers"},
                                               {"heads", 12, "attention heads"},
                                               {"intermediate", 3072, "width of the feed-forward layers"},
                                               {"positions", 512, "longest sequence"},
                                               {"types", 2, "token types (segments)"},
                                               {"eps", 1e-12, "epsilon of the norms"},
                                               {"activation", "gelu", "activation of the feed-forward layers"},
                                               {"dropout", 0.1, "dropout outside attention"},
                                               {"attention_dropout", 0.1, "dropout in attention"}},
                                              16, 128, 30522),
          .build = build_encoder};
}

}  // namespace forerun::zoo
