// DeBERTa V2 and V3: attention of contents and of relative positions apart, in the one setting that their checkpoints of
// version 3 have: both kinds of scores, keys and queries of positions projected as those of contents, positions in buckets.
//
// Source: DebertaV2ForMaskedLM of transformers 5.22, which has eager attention alone; no attention mask is given, the head
// is tied to the word embeddings. Left out: the convolution beside the first layer, token types, absolute positions.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "zoo/bert_layers.h"
#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

// What all layers look at.
struct DebertaContext {
  TensorId mask;       // [batch, 1, length, length], ones
  TensorId distances;  // [1, length, length], bucket numbers
  TensorId positions;  // [2 * buckets, hidden]
  TensorId number;     // of the host: the scale of scores is made from one each time
};

struct DebertaSizes {
  BertSizes bert;
  int64_t buckets;
};

// [batch, length, hidden] -> [batch * heads, length, head]
TensorId heads_in_batch(ForwardBuilder& b, TensorId x, int64_t heads) {
  const Shape s = b.shape(x);
  x = b.permute(b.view(x, {s[0], s[1], heads, -1}), {0, 2, 1, 3});
  return b.view(b.contiguous(x), {-1, s[1], s[2] / heads});
}

class DebertaAttention {
 public:
  DebertaAttention(ForwardBuilder& b, const DebertaSizes& s)
      : b_(b),
        path_(b.path_of("attention.self")),
        heads_(s.bert.heads),
        buckets_(s.buckets),
        query_(b, "attention.self.query_proj", s.bert.hidden, s.bert.hidden),
        key_(b, "attention.self.key_proj", s.bert.hidden, s.bert.hidden),
        value_(b, "attention.self.value_proj", s.bert.hidden, s.bert.hidden),
        position_dropout_(b, "attention.self.pos_dropout", s.bert.dropout),
        dropout_(b, "attention.self.dropout", s.bert.attention_dropout) {}

  TensorId operator()(TensorId x, const DebertaContext& context) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t batch = b_.extent(x, 0);
    const int64_t length = b_.extent(x, 1);
    const TensorId query = heads_in_batch(b_, query_(x), heads_);
    const TensorId key = heads_in_batch(b_, key_(x), heads_);
    const TensorId value = heads_in_batch(b_, value_(x), heads_);
    const TensorId scale = scale_of(context);
    const TensorId turned = b_.transpose(key, -1, -2);
    TensorId scores = b_.bmm(query, b_.binary("aten.div.Tensor", turned, b_.type_as(scale, query)));
    scores = b_.add(scores, of_positions(query, key, context));
    scores = b_.view(scores, {-1, heads_, length, length});
    const TensorId hidden = b_.unary("aten.bitwise_not.default", b_.to_dtype(context.mask, DType::boolean));
    scores = b_.opaque("aten.masked_fill.Scalar", {scores, hidden}, {{b_.shape(scores), b_.dtype(scores)}}).front();
    const TensorId weights = dropout_(b_.softmax(scores, -1));
    TensorId y = b_.bmm(b_.view(weights, {-1, length, length}), value);
    y = b_.contiguous(b_.permute(b_.view(y, {-1, heads_, length, b_.extent(y, 2)}), {0, 2, 1, 3}));
    return b_.view(y, {batch, length, -1});
  }

 private:
  [[nodiscard]] TensorId scale_of(const DebertaContext& context) const {
    const TensorId number = b_.unary("aten.detach.default", b_.to_dtype(context.number, DType::float32));
    return b_.unary("aten.sqrt.default", b_.unary("aten.mul.Scalar", number, {{"other", int64_t{3}}}));
  }

  // What contents say of positions, and positions of contents.
  [[nodiscard]] TensorId of_positions(TensorId query, TensorId key, const DebertaContext& context) const {
    const TensorId kept = position_dropout_(context.positions);
    const TensorId distances = b_.unsqueeze(context.distances, 1);
    const TensorId positions = b_.unsqueeze(alias(b_, kept), 0);
    const TensorId position_query = for_each_sample(query_(positions), b_.extent(query, 0));
    const TensorId position_key = for_each_sample(key_(positions), b_.extent(query, 0));

    TensorId scale = scale_of(context);
    TensorId scores = b_.bmm(query, b_.transpose(position_key, -1, -2));
    scores = picked(scores, in_table(distances), b_.shape(scores)[1]);
    scores = b_.binary("aten.div.Tensor", scores, b_.type_as(scale, scores));
    scores = b_.unary("aten.add.Tensor", scores, {{"other", int64_t{0}}});
    scale = scale_of(context);
    const TensorId back = in_table(b_.unary("aten.neg.default", distances));
    TensorId others = b_.bmm(key, b_.transpose(position_query, -1, -2));
    others = b_.transpose(picked(others, back, b_.shape(others)[1]), -1, -2);
    return b_.add_(scores, b_.binary("aten.div.Tensor", others, b_.type_as(scale, others)));
  }

  [[nodiscard]] TensorId for_each_sample(TensorId x, int64_t rows) const {
    x = heads_in_batch(b_, x, heads_);
    const Shape s = b_.shape(x);
    return b_
        .opaque("aten.repeat.default", {x}, {{{rows, s[1], s[2]}, b_.dtype(x)}},
                {{"repeats", Shape{rows / s[0], 1, 1}}})
        .front();
  }

  // Distances as rows of the table.
  [[nodiscard]] TensorId in_table(TensorId distances) const {
    const TensorId rows = b_.unary("aten.add.Tensor", distances, {{"other", buckets_}});
    return b_.unary("aten.clamp.default", rows, {{"min", int64_t{0}}, {"max", 2 * buckets_ - 1}});
  }

  [[nodiscard]] TensorId picked(TensorId scores, TensorId rows, int64_t length) const {
    return b_.gather(scores, -1, b_.expand(b_.squeeze(rows, 0), {b_.extent(scores, 0), length, length}));
  }

  ForwardBuilder& b_;
  std::string path_;
  int64_t heads_, buckets_;
  Linear query_, key_, value_;
  Dropout position_dropout_, dropout_;
};

class DebertaLayer {
 public:
  DebertaLayer(ForwardBuilder& b, const DebertaSizes& s)
      : b_(b),
        path_(b.path_of("")),
        activation_(s.bert.activation),
        attention_(b, s),
        attention_output_(b, "attention.output", s.bert.hidden, s.bert),
        up_(b, "intermediate.dense", s.bert.hidden, s.bert.intermediate),
        output_(b, "output", s.bert.intermediate, s.bert) {}

  TensorId operator()(TensorId x, const DebertaContext& context) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = attention_output_(attention_(x, context), x);
    TensorId y = up_(x);
    {
      const Scope activation(b_, "intermediate.intermediate_act_fn");
      y = activate(b_, activation_, y);
    }
    return output_(y, x);
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  std::string activation_;
  DebertaAttention attention_;
  ResidualOutput attention_output_;
  Linear up_;
  ResidualOutput output_;
};

// The bucket of each pair of positions, near ones exact and far ones by the logarithm: [1, length, length].
TensorId deberta_buckets(ForwardBuilder& b, int64_t length, int64_t buckets, TensorId number, TensorId ratio) {
  const int64_t middle = buckets / 2;
  const auto scalar = [&](const char* name, TensorId x, int64_t other) { return b.unary(name, x, {{"other", other}}); };
  const TensorId rows = arange(b, length);
  const TensorId columns = arange(b, length);
  const TensorId row = b.unsqueeze(rows, 1);
  const TensorId distance = b.binary("aten.sub.Tensor", row, b.unsqueeze(columns, 0));
  const TensorId sign = b.unary("aten.sign.default", distance);
  const TensorId below = scalar("aten.lt.Scalar", distance, middle);
  const TensorId near = b.binary("aten.bitwise_and.Tensor", below, scalar("aten.gt.Scalar", distance, -middle));
  const TensorId size = b.where(near, number, b.unary("aten.abs.default", distance));
  TensorId far = b.opaque("aten.div.Scalar", {size}, {{{length, length}, DType::float32}}, {{"other", middle}}).front();
  far = b.unary("aten.log.default", far);
  far = b.binary("aten.div.Tensor", far, b.unary("aten.log.default", ratio));
  far = b.unary("aten.ceil.default", scalar("aten.mul.Scalar", far, middle - 1));
  far = scalar("aten.add.Scalar", far, middle);
  const TensorId exact = scalar("aten.le.Scalar", size, middle);
  const TensorId plain = b.to_dtype(distance, DType::float32);
  const TensorId bucket = b.where(exact, plain, b.mul(far, sign));
  return b.unsqueeze(alias(b, b.to_dtype(bucket, DType::int64)), 0);
}

class DebertaEmbeddings {
 public:
  DebertaEmbeddings(ForwardBuilder& b, const Configuration& c, const BertSizes& s)
      : b_(b),
        path_(b.path_of("embeddings")),
        words_(b, "embeddings.word_embeddings", c.integer("vocab"), s.hidden),
        norm_(b, "embeddings.LayerNorm", s.hidden, s.eps),
        dropout_(b, "embeddings.dropout", s.dropout),
        numbers_(b.buffer("embeddings.position_ids", {1, c.integer("positions")}, DType::int64)) {}

  [[nodiscard]] TensorId words() const { return words_.weight(); }

  TensorId operator()(TensorId tokens, TensorId kept) const {
    const Scope scope(b_, path_, Scope::absolute);
    take_first(b_, numbers_, 1, b_.extent(tokens, 1));  // of no use where positions are relative, but made
    const TensorId x = words_(tokens);
    b_.unary("aten.zeros_like.default", x);
    const TensorId normed = norm_(x);
    return dropout_(b_.mul(normed, b_.unsqueeze(kept, 2)));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  Embedding words_;
  LayerNorm norm_;
  Dropout dropout_;
  TensorId numbers_;
};

// The library looks whether the first or last tokens are padding and no mask was given: the host waits for the answer.
void look_for_padding(ForwardBuilder& b, TensorId tokens) {
  const int64_t batch = b.extent(tokens, 0);
  const TensorId places = b.create("aten.lift_fresh.default", {2}, DType::int64);
  const TensorId ends = b.index(tokens, {places}, {batch, 2});
  const TensorId padded = b.unary("aten.eq.Scalar", ends, {{"other", int64_t{0}}});
  const TensorId any = b.opaque("aten.any.default", {padded}, {{{}, DType::boolean}}).front();
  b.opaque("aten._local_scalar_dense.default", {any}, {});
}

bool deberta_makes_sense(ForwardBuilder& b, const Configuration& c) {
  return within(b, c, {"batch", "length", "vocab", "hidden", "heads", "intermediate", "positions"}) &&
         within(b, c, {"buckets"}, 2) && within(b, c, {"layers"}, 1, kMostLayers) &&
         heads_divide(b, c.integer("heads"), c.integer("hidden")) && is_activation(b, c.text("activation")) &&
         is_dropout(b, c.real("dropout")) && is_dropout(b, c.real("attention_dropout")) && fits_positions(b, c);
}

void build_deberta(ForwardBuilder& b, const Configuration& c) {
  if (!deberta_makes_sense(b, c)) return;
  const DebertaSizes sizes = {.bert = {.hidden = c.integer("hidden"),
                                       .heads = c.integer("heads"),
                                       .intermediate = c.integer("intermediate"),
                                       .dropout = c.real("dropout"),
                                       .attention_dropout = c.real("attention_dropout"),
                                       .eps = c.real("eps"),
                                       .activation = c.text("activation")},
                              .buckets = c.integer("buckets")};
  const int64_t hidden = sizes.bert.hidden;
  const Shape shape = {c.integer("batch"), c.integer("length")};
  const TensorId tokens = token_input(b, c);
  const TensorId number = b.buffer("whole_number", {}, DType::int64);  // numbers of the host that scripted code reads
  const TensorId ratio = b.buffer("number", {});
  std::optional<Scope> model(std::in_place, b, "deberta");
  const DebertaEmbeddings embeddings(b, c, sizes.bert);
  std::vector<DebertaLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("encoder.layer.{}", i));
    layers.emplace_back(b, sizes);
  }
  const TensorId table = b.parameter("encoder.rel_embeddings.weight", {2 * sizes.buckets, hidden});
  const LayerNorm table_norm(b, "encoder.LayerNorm", hidden, sizes.bert.eps);
  model.reset();
  const TensorId bias = b.parameter("cls.predictions.bias", {c.integer("vocab")});
  const Linear dense(b, "cls.predictions.transform.dense", hidden, hidden);
  const LayerNorm norm(b, "cls.predictions.transform.LayerNorm", hidden, sizes.bert.eps);

  model.emplace(b, "deberta");
  look_for_padding(b, tokens);
  const TensorId kept = b.create("aten.ones.default", shape, DType::float32);
  b.create("aten.zeros.default", shape, DType::int64);  // token types, of which there are none
  TensorId x = embeddings(tokens, kept);
  DebertaContext context;
  {
    const Scope scope(b, "encoder");
    const TensorId columns = b.unsqueeze(b.unsqueeze(kept, 1), 2);
    context.mask = b.mul(columns, b.unsqueeze(b.squeeze(columns, -2), -1));
    context.number = number;
    context.distances = deberta_buckets(b, shape[1], sizes.buckets, number, ratio);
    context.positions = table_norm(table);
  }
  for (const DebertaLayer& layer : layers) x = layer(x, context);
  model.reset();
  x = dense(x);
  {
    const Scope scope(b, "cls.predictions.transform.transform_act_fn");
    x = activate(b, sizes.bert.activation, x);
  }
  x = norm(x);
  const Scope scope(b, "cls.predictions.decoder");
  b.result(b.linear(x, embeddings.words(), bias));
}

}  // namespace

Family deberta_family() {
  return {.name = "deberta",
          .description = "DeBERTa of version 3 (transformers)",
          .input = InputKind::tokens,
          .flavour = "hf",
          .parameters = with_token_parameters({{"hidden", 768, "width of the model"},
                                               {"layers", 12, "encoder layers"},
                                               {"heads", 12, "attention heads"},
                                               {"intermediate", 3072, "width of the feed-forward layers"},
                                               {"positions", 512, "longest sequence"},
                                               {"buckets", 256, "buckets of distances to each side"},
                                               {"eps", 1e-7, "epsilon of the norms"},
                                               {"activation", "gelu", "activation of the feed-forward layers"},
                                               {"dropout", 0.1, "dropout outside attention"},
                                               {"attention_dropout", 0.1, "dropout in attention"}},
                                              16, 512, 128100),
          .build = build_deberta};
}

}  // namespace forerun::zoo
