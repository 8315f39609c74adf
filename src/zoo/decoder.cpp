// Decoders of the Llama line, as one family with switches: Llama, Mistral, Qwen 2 and 3, Phi-3, Gemma 1 to 3, OLMo 2, and
// with experts Mixtral, Qwen 2 and 3 MoE, OLMoE, Llama 4 and (with attention of their own) DeepSeek V2 and V3.
//
// Source: their *ForCausalLM of transformers 5.22, sdpa attention (Gemma 2: eager, since sdpa knows no soft cap) without
// padding, key-value cache off. Llama 4's experts are torchtitan's (grouped products on the rows that were sent to an expert), where
// transformers has all tokens pass through all experts. Which switches make which model: hf_decoders.cpp. Left out: rotary tables
// that are made anew for long sequences (dynamic).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"
#include "zoo/gated_feed_forward.h"
#include "zoo/latent_attention.h"
#include "zoo/mixture_of_experts.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

// Where queries and keys are normed: nowhere, over all heads at once, head by head before or after heads come first, or behind their
// rotation without a weight (Llama 4).
enum class QueryNorm : uint8_t { none, width, head, head_first, rotated };
// Which side of attention and feed-forward is normed.
enum class NormSide : uint8_t { before, after, both };

struct DecoderOptions {
  int64_t hidden, intermediate, heads, kv_heads, head, rotary;
  double eps, scale, softcap, attention_dropout, dropout;
  bool qkv_bias, out_bias, mlp_bias, fused, eager, chunked;
  int64_t experts, experts_per_token, shared_expert, expert_groups, groups_per_token;
  int64_t dense_layers, dense_intermediate, expert_step;
  Routing routing;
  std::optional<LatentOptions> latent;
  bool normed_scores, cast_scores, router_last;
  QueryNorm query_norm;
  NormSide norm_side;
  RmsWeight rms_weight;
  std::string activation;
};

// What all layers of a kind look at.
struct LayerContext {
  std::optional<TensorId> mask;
  RotaryTables rotary;
  std::optional<TensorId> query_scales;  // of layers without rotary positions, by position (Llama 4)
};

// Queries, keys and values: [batch, heads, length, head].
struct Projections {
  TensorId query, key, value;
};

class DecoderAttention {
 public:
  DecoderAttention(ForwardBuilder& b, const DecoderOptions& o) : b_(b), path_(b.path_of("self_attn")), o_(o) {
    const Scope scope(b, "self_attn");
    const int64_t query = o.heads * o.head;
    const int64_t key = o.kv_heads * o.head;
    if (o.fused) {
      out_.emplace(b, "o_proj", query, o.hidden, o.out_bias);
      query_.emplace(b, "qkv_proj", o.hidden, query + 2 * key, o.qkv_bias);
    } else {
      query_.emplace(b, "q_proj", o.hidden, query, o.qkv_bias);
      key_.emplace(b, "k_proj", o.hidden, key, o.qkv_bias);
      value_.emplace(b, "v_proj", o.hidden, key, o.qkv_bias);
      out_.emplace(b, "o_proj", query, o.hidden, o.out_bias);
    }
    if (o.query_norm == QueryNorm::none || o.query_norm == QueryNorm::rotated) return;
    const bool whole = o.query_norm == QueryNorm::width;
    query_norm_.emplace(b, "q_norm", whole ? query : o.head, o.eps, o.rms_weight);
    key_norm_.emplace(b, "k_norm", whole ? key : o.head, o.eps, o.rms_weight);
  }

  TensorId operator()(TensorId x, const LayerContext& context) const {
    const Scope scope(b_, path_, Scope::absolute);
    Projections heads = o_.chunked ? chunked_heads(x, context) : o_.fused ? split_fused(x) : project(x);
    if (!o_.chunked) rotate(heads, context.rotary);
    return (*out_)(merge_heads(b_, o_.eager ? spelled_out(heads, context.mask) : fused_op(heads, context.mask)));
  }

 private:
  [[nodiscard]] Projections project(TensorId x) const {
    if (o_.query_norm == QueryNorm::head) {
      const TensorId query = normed_heads((*query_)(x), *query_norm_);
      const TensorId key = normed_heads((*key_)(x), *key_norm_);
      return {query, key, split_heads(b_, (*value_)(x), o_.head)};
    }
    if (o_.query_norm == QueryNorm::width) {
      const TensorId query = (*query_norm_)((*query_)(x));
      const TensorId key = (*key_norm_)((*key_)(x));
      const TensorId value = (*value_)(x);
      return split_all(query, key, value);
    }
    Projections p{};
    p.query = split_heads(b_, (*query_)(x), o_.head);
    p.key = split_heads(b_, (*key_)(x), o_.head);
    p.value = split_heads(b_, (*value_)(x), o_.head);
    if (o_.query_norm == QueryNorm::head_first) {
      p.query = (*query_norm_)(p.query);
      p.key = (*key_norm_)(p.key);
    }
    return p;
  }

  // Llama 4: positions turn pairs as complex numbers, before heads come first; where there are none, queries are scaled by how far
  // back they look.
  [[nodiscard]] Projections chunked_heads(TensorId x, const LayerContext& context) const {
    const auto split = [&](const Linear& projection) {
      return b_.view(projection(x), {b_.extent(x, 0), b_.extent(x, 1), -1, o_.head});
    };
    TensorId query = split(*query_);
    TensorId key = split(*key_);
    const TensorId value = split(*value_);
    if (context.query_scales) {
      query = b_.type_as(b_.mul(query, *context.query_scales), query);
    } else {
      const TensorId table = b_.unsqueeze(context.rotary.cosine, 2);
      query = turned_as_complex(b_, query, table);
      key = turned_as_complex(b_, key, table);
      if (o_.query_norm == QueryNorm::rotated) {
        query = unweighted_norm(query);
        key = unweighted_norm(key);
      }
    }
    return {b_.transpose(query, 1, 2), b_.transpose(key, 1, 2), b_.transpose(value, 1, 2)};
  }

  [[nodiscard]] TensorId unweighted_norm(TensorId x) const {
    const TensorId wide = b_.to_dtype(x, DType::float32);
    const TensorId square = b_.unary("aten.pow.Tensor_Scalar", wide, {{"exponent", int64_t{2}}});
    const TensorId scale = b_.unary("aten.rsqrt.default", b_.add_scalar(b_.mean(square, {-1}, true), o_.eps));
    return b_.type_as(b_.mul(wide, scale), x);
  }

  [[nodiscard]] TensorId normed_heads(TensorId x, const CastingRmsNorm& norm) const {
    x = b_.view(x, {b_.extent(x, 0), b_.extent(x, 1), -1, o_.head});
    return b_.transpose(norm(x), 1, 2);
  }

  [[nodiscard]] Projections split_all(TensorId query, TensorId key, TensorId value) const {
    Projections p{};
    p.query = split_heads(b_, query, o_.head);
    p.key = split_heads(b_, key, o_.head);
    p.value = split_heads(b_, value, o_.head);
    return p;
  }

  [[nodiscard]] Projections split_fused(TensorId x) const {
    const TensorId all = (*query_)(x);
    const int64_t query_end = o_.heads * o_.head;
    const int64_t key_end = query_end + o_.kv_heads * o_.head;
    const TensorId query = b_.slice(all, 2, 0, query_end);
    const TensorId key = b_.slice(all, 2, query_end, key_end);
    const TensorId value = b_.slice(all, 2, key_end, kToEnd);
    return split_all(query, key, value);
  }

  // Fused projections come with rotary positions on a part of each head.
  void rotate(Projections& p, const RotaryTables& tables) const {
    const TensorId cosine = b_.unsqueeze(tables.cosine, 1);
    const RotaryTables spread = {cosine, b_.unsqueeze(tables.sine, 1)};
    if (!o_.fused) {
      p.query = rotate_halves(b_, p.query, spread);
      p.key = rotate_halves(b_, p.key, spread);
      return;
    }
    const TensorId query = take_first(b_, p.query, 3, o_.rotary);
    const TensorId query_rest = b_.slice(p.query, 3, o_.rotary, kToEnd);
    const TensorId key = take_first(b_, p.key, 3, o_.rotary);
    const TensorId key_rest = b_.slice(p.key, 3, o_.rotary, kToEnd);
    p.query = b_.cat({rotate_halves(b_, query, spread), query_rest}, -1);
    p.key = b_.cat({rotate_halves(b_, key, spread), key_rest}, -1);
  }

  [[nodiscard]] TensorId fused_op(const Projections& p, std::optional<TensorId> mask) const {
    constexpr int64_t kWidestGroupedHead = 256;  // wider ones would fall back to the composed form
    const int64_t groups = o_.heads / o_.kv_heads;
    const bool grouped = groups > 1 && !mask && o_.head <= kWidestGroupedHead;
    const TensorId key = grouped ? p.key : repeat_key_value_heads(b_, p.key, groups);
    const TensorId value = grouped ? p.value : repeat_key_value_heads(b_, p.value, groups);
    const AttentionOptions options = {.mask = mask,
                                      .dropout = o_.attention_dropout,
                                      .causal = !mask && b_.extent(p.query, 2) > 1,
                                      .scale = o_.scale,
                                      .grouped_query = grouped};
    return b_.attention(p.query, key, value, options);
  }

  [[nodiscard]] TensorId spelled_out(const Projections& p, std::optional<TensorId> mask) const {
    const int64_t groups = o_.heads / o_.kv_heads;
    const TensorId key = repeat_key_value_heads(b_, p.key, groups);
    const TensorId value = repeat_key_value_heads(b_, p.value, groups);
    TensorId scores = b_.mul_scalar(b_.matmul(p.query, b_.transpose(key, 2, 3)), o_.scale);
    if (o_.softcap > 0) scores = soft_cap(b_, scores, o_.softcap);
    if (mask) scores = b_.add(scores, *mask);
    TensorId weights = b_.type_as(b_.softmax(b_.to_dtype(scores, DType::float32), -1), p.query);
    if (o_.attention_dropout > 0) weights = b_.dropout(weights, o_.attention_dropout);
    return b_.matmul(weights, value);
  }

  ForwardBuilder& b_;
  std::string path_;
  DecoderOptions o_;
  std::optional<Linear> query_, key_, value_, out_;  // fused: query_ makes all three
  std::optional<CastingRmsNorm> query_norm_, key_norm_;
};

GatedOptions gated_options(const DecoderOptions& o) {
  return {.hidden = o.hidden,
          .intermediate = o.experts > 0 ? o.dense_intermediate : o.intermediate,
          .bias = o.mlp_bias,
          .fused = o.fused,
          .activation = o.activation};
}

ExpertOptions expert_options(const DecoderOptions& o) {
  return {.hidden = o.hidden,
          .intermediate = o.intermediate,
          .experts = o.experts,
          .per_token = o.experts_per_token,
          .shared = o.shared_expert,
          .shared_gate = o.routing == Routing::softmax,
          .routing = o.routing,
          .groups = o.expert_groups,
          .groups_per_token = o.groups_per_token,
          .normed_scores = o.normed_scores,
          .cast_scores = o.cast_scores,
          .router_last = o.router_last,
          .activation = o.activation};
}

class DecoderLayer {
 public:
  DecoderLayer(ForwardBuilder& b, const DecoderOptions& o, int64_t number)
      : b_(b), path_(b.path_of("")), dropout_(o.dropout) {
    if (o.latent) latent_.emplace(b, "self_attn", *o.latent);
    if (!o.latent) attention_.emplace(b, o);
    const bool has_experts = o.experts > 0 && number >= o.dense_layers && (number + 1) % o.expert_step == 0;
    if (!has_experts) feed_forward_.emplace(b, "mlp", gated_options(o));
    if (has_experts) experts_.emplace(b, "mlp", expert_options(o));
    const auto norm = [&](std::optional<CastingRmsNorm>& slot, std::string_view name) {
      slot.emplace(b, name, o.hidden, o.eps, o.rms_weight);
    };
    if (o.norm_side != NormSide::after) norm(before_attention_, "input_layernorm");
    if (o.norm_side != NormSide::before) norm(after_attention_, "post_attention_layernorm");
    if (o.norm_side == NormSide::before) norm(before_feed_forward_, "post_attention_layernorm");
    if (o.norm_side == NormSide::both) norm(before_feed_forward_, "pre_feedforward_layernorm");
    if (o.norm_side != NormSide::before) norm(after_feed_forward_, "post_feedforward_layernorm");
  }

  TensorId operator()(TensorId x, const LayerContext& context) const {
    const Scope scope(b_, path_, Scope::absolute);
    TensorId y = attend(before_attention_ ? (*before_attention_)(x) : x, context);
    y = dropped("resid_attn_dropout", after_attention_ ? (*after_attention_)(y) : y);
    x = b_.add(x, y);
    y = before_feed_forward_ ? (*before_feed_forward_)(x) : x;
    y = experts_ ? (*experts_)(y) : (*feed_forward_)(y);
    y = dropped("resid_mlp_dropout", after_feed_forward_ ? (*after_feed_forward_)(y) : y);
    return b_.add(x, y);
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x, const LayerContext& context) const {
    return latent_ ? (*latent_)(x, context.rotary, context.mask) : (*attention_)(x, context);
  }

  [[nodiscard]] TensorId dropped(std::string_view module, TensorId x) const {
    return dropout_ > 0 ? Dropout(b_, module, dropout_)(x) : x;
  }

  ForwardBuilder& b_;
  std::string path_;
  double dropout_;
  std::optional<DecoderAttention> attention_;  // one of the two
  std::optional<LatentAttention> latent_;
  std::optional<GatedFeedForward> feed_forward_;  // one of the two
  std::optional<MixtureOfExperts> experts_;
  std::optional<CastingRmsNorm> before_attention_, after_attention_, before_feed_forward_, after_feed_forward_;
};

template <class T, size_t N>
std::optional<T> choice(ForwardBuilder& b, const Configuration& c, const char* name,
                        const std::pair<const char*, T> (&values)[N]) {
  std::string known;
  for (const auto& [word, value] : values) {
    if (c.text(name) == word) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", word);
  }
  b.fail(fmt::format("{} is '{}'", name, c.text(name)), "known: " + known);
  return std::nullopt;
}

std::optional<LatentOptions> latent_options(ForwardBuilder& b, const Configuration& c) {
  const auto kind = choice<LatentRotary>(
      b, c, "latent_rotary",
      {{"halves", LatentRotary::halves}, {"pairs", LatentRotary::pairs}, {"complex", LatentRotary::complex}});
  if (!kind || !within(b, c, {"plain_head", "value_head"})) return std::nullopt;
  const int64_t head = c.integer("plain_head") + c.integer("head");
  return LatentOptions{.hidden = c.integer("hidden"),
                       .heads = c.integer("heads"),
                       .query_rank = c.integer("query_rank"),
                       .key_rank = c.integer("key_rank"),
                       .plain = c.integer("plain_head"),
                       .rotary = c.integer("head"),
                       .value = c.integer("value_head"),
                       .dropout = c.real("attention_dropout"),
                       .scale = 1 / std::sqrt(static_cast<double>(head)),
                       .bias = c.flag("qkv_bias"),
                       .kind = *kind};
}

std::optional<DecoderOptions> decoder_options(ForwardBuilder& b, const Configuration& c) {
  const auto query_norm = choice<QueryNorm>(b, c, "query_norm",
                                            {{"none", QueryNorm::none},
                                             {"width", QueryNorm::width},
                                             {"head", QueryNorm::head},
                                             {"head_first", QueryNorm::head_first},
                                             {"rotated", QueryNorm::rotated}});
  const auto side = choice<NormSide>(
      b, c, "norm_side", {{"before", NormSide::before}, {"after", NormSide::after}, {"both", NormSide::both}});
  const auto weight = choice<RmsWeight>(b, c, "norm_weight",
                                        {{"after_cast", RmsWeight::after_cast},
                                         {"before_cast", RmsWeight::before_cast},
                                         {"one_plus", RmsWeight::one_plus}});
  const auto routing = choice<Routing>(b, c, "routing",
                                       {{"softmax", Routing::softmax},
                                        {"scaled_softmax", Routing::scaled_softmax},
                                        {"grouped_softmax", Routing::grouped_softmax},
                                        {"grouped_sigmoid", Routing::grouped_sigmoid},
                                        {"sigmoid", Routing::sigmoid}});
  if (!query_norm || !side || !weight || !routing) return std::nullopt;
  std::optional<LatentOptions> latent;
  if (c.integer("key_rank") > 0) {
    latent = latent_options(b, c);
    if (!latent) return std::nullopt;
  }
  const int64_t head = c.integer("head") > 0 ? c.integer("head") : c.integer("hidden") / c.integer("heads");
  const auto rotary = static_cast<int64_t>(static_cast<double>(head) * c.real("rotary"));
  const double divisor = c.real("query_scalar") > 0 ? c.real("query_scalar") : static_cast<double>(head);
  return DecoderOptions{.hidden = c.integer("hidden"),
                        .intermediate = c.integer("intermediate"),
                        .heads = c.integer("heads"),
                        .kv_heads = c.integer("kv_heads"),
                        .head = head,
                        .rotary = rotary,
                        .eps = c.real("eps"),
                        .scale = 1 / std::sqrt(divisor),
                        .softcap = c.real("attention_softcap"),
                        .attention_dropout = c.real("attention_dropout"),
                        .dropout = c.real("dropout"),
                        .qkv_bias = c.flag("qkv_bias"),
                        .out_bias = c.flag("out_bias"),
                        .mlp_bias = c.flag("mlp_bias"),
                        .fused = c.flag("fused"),
                        .eager = is_eager(c),
                        .chunked = c.flag("chunked"),
                        .experts = c.integer("experts"),
                        .experts_per_token = c.integer("experts_per_token"),
                        .shared_expert = c.integer("shared_expert"),
                        .expert_groups = c.integer("expert_groups"),
                        .groups_per_token = c.integer("groups_per_token"),
                        .dense_layers = c.integer("dense_layers"),
                        .dense_intermediate = c.integer("dense_intermediate"),
                        .expert_step = c.integer("expert_step"),
                        .routing = *routing,
                        .latent = latent,
                        .normed_scores = c.flag("normed_scores"),
                        .cast_scores = c.flag("cast_scores"),
                        .router_last = c.flag("router_last"),
                        .query_norm = *query_norm,
                        .norm_side = *side,
                        .rms_weight = *weight,
                        .activation = c.text("activation")};
}

bool pattern_makes_sense(ForwardBuilder& b, const Configuration& c) {
  const std::string& pattern = c.text("pattern");
  if (pattern.empty() || pattern.find_first_not_of("fs") != std::string::npos) {
    b.fail(fmt::format("pattern is '{}'", pattern.substr(0, 80)),
           "write one letter a layer, repeated as needed: f for full attention, s for a sliding window");
    return false;
  }
  if (c.integer("window") > 0 || pattern.find('s') == std::string::npos) return true;
  b.fail("layers with a sliding window and no window", "set window to the tokens it holds");
  return false;
}

bool decoder_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "length", "vocab", "hidden", "intermediate", "heads", "kv_heads"}) ||
      !within(b, c, {"head", "window", "experts", "shared_expert", "dense_layers", "query_rank", "key_rank"}, 0) ||
      !within(b, c, {"expert_groups", "groups_per_token", "dense_intermediate", "expert_step"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !is_activation(b, c.text("activation")) || !is_attention(b, c) ||
      !is_dropout(b, c.real("dropout")) || !is_dropout(b, c.real("attention_dropout")) || !pattern_makes_sense(b, c)) {
    return false;
  }
  if (c.integer("head") == 0 && !heads_divide(b, c.integer("heads"), c.integer("hidden"))) return false;
  if (c.integer("heads") % c.integer("kv_heads") != 0) {
    b.fail(fmt::format("{} key-value heads do not divide {} heads", c.integer("kv_heads"), c.integer("heads")),
           "choose kv_heads that divide heads");
    return false;
  }
  if (c.integer("experts") > 0 && c.integer("experts_per_token") > c.integer("experts")) {
    b.fail(fmt::format("{} experts a token, of {}", c.integer("experts_per_token"), c.integer("experts")),
           "choose experts_per_token of at most experts");
    return false;
  }
  const bool rotates_halves = c.flag("fused") || c.integer("key_rank") > 0 || c.flag("local_rotary");
  const bool norms_otherwise = c.text("query_norm") != "none" && c.text("query_norm") != "rotated";
  if (c.flag("chunked") && (rotates_halves || norms_otherwise)) {
    b.fail("chunked attention is Llama 4's",
           "leave out fused, key_rank and local_rotary; query_norm is none or rotated");
    return false;
  }
  if (!c.flag("chunked") && c.text("query_norm") == "rotated") {
    b.fail("queries that are normed behind their rotation are Llama 4's", "set chunked too");
    return false;
  }
  const int64_t groups = c.integer("expert_groups");
  if (c.integer("experts") > 0 && (c.integer("experts") % groups != 0 || c.integer("groups_per_token") > groups ||
                                   (c.text("routing") == "grouped_sigmoid" && c.integer("experts") < 2 * groups))) {
    b.fail(fmt::format("{} experts in {} groups, of which a token uses {}", c.integer("experts"), groups,
                       c.integer("groups_per_token")),
           "choose expert_groups that divide experts, and groups_per_token of at most as many");
    return false;
  }
  if (c.real("attention_softcap") > 0 && !is_eager(c)) {
    b.fail("sdpa attention knows no soft cap", "set attention to eager");
    return false;
  }
  return true;
}

bool rotary_makes_sense(ForwardBuilder& b, const DecoderOptions& o, double share) {
  if (o.rotary % 2 == 0 && o.rotary >= 2 && o.rotary <= o.head && (o.fused || o.rotary == o.head)) return true;
  b.fail(fmt::format("rotary positions on {} of {} numbers of a head", o.rotary, o.head),
         share == 1 ? "choose heads of an even width" : "a part of the head takes fused projections and an even width");
  return false;
}

// The rotary tables of one kind of layer, from buffers named after it.
TensorId rotary_frequencies(ForwardBuilder& b, const std::string& prefix, int64_t width) {
  const TensorId frequencies = b.buffer(fmt::format("rotary_emb.{}inv_freq", prefix), {width / 2});
  b.buffer(fmt::format("rotary_emb.{}original_inv_freq", prefix), {width / 2});
  return frequencies;
}

// longrope: whether a sequence is long decides between two tables.
TensorId chosen_frequencies(ForwardBuilder& b, TensorId positions, TensorId short_table, TensorId long_table) {
  const Scope scope(b, "rotary_emb");
  const TensorId last = b.opaque("aten.max.default", {positions}, {{{}, DType::int64}}).front();
  const TensorId length = b.unary("aten.add.Tensor", last, {{"other", int64_t{1}}});
  return b.where(b.unary("aten.gt.Scalar", length), long_table, short_table);
}

// What rotary tables are made from.
struct Frequencies {
  TensorId usual;
  std::optional<TensorId> local;     // of layers with a window
  std::optional<TensorId> for_long;  // of long sequences
};

// log(floor((position + 1) / 8192) + 1) * 0.1 + 1: [1, length, 1, 1].
TensorId scales_by_position(ForwardBuilder& b, int64_t length) {
  const TensorId numbers = b.unary("aten.add.Tensor", arange(b, length), {{"other", int64_t{1}}});
  const TensorId parts = b.unary("aten.floor_divide.default", b.to_dtype(numbers, DType::float32), {{"other", 8192.0}});
  const TensorId logs = b.unary("aten.log1p.default", parts);
  return b.view(b.add_scalar(b.mul_scalar(logs, 0.1), 1.0), {1, length, 1, 1});
}

// What layers with full attention and with a window look at; the tables are shared unless `local_rotary`.
struct Contexts {
  LayerContext full, windowed;
};

Contexts make_contexts(ForwardBuilder& b, const Configuration& c, TensorId x, const Frequencies& tables) {
  const TensorId positions = position_numbers(b, c.integer("length"));
  MaskOptions options = {.batch = c.integer("batch"), .length = c.integer("length"), .eager = is_eager(c)};
  const std::string& pattern = c.text("pattern");
  Contexts contexts;
  if (pattern.find('f') != std::string::npos) contexts.full.mask = decoder_mask(b, positions, options);
  options.window = c.flag("spare_mask") ? 1 : c.integer("window");
  options.chunked = c.flag("chunked");
  if (c.flag("spare_mask") || pattern.find('s') != std::string::npos) {
    contexts.windowed.mask = decoder_mask(b, positions, options);
  }
  if (tables.local) contexts.windowed.rotary = rotary_tables_of(b, *tables.local, positions, x);
  const TensorId usual =
      tables.for_long ? chosen_frequencies(b, positions, tables.usual, *tables.for_long) : tables.usual;
  const bool complex = c.flag("chunked") || (c.integer("key_rank") > 0 && c.text("latent_rotary") == "complex");
  contexts.full.rotary = complex ? complex_rotary_table(b, usual, positions) : rotary_tables_of(b, usual, positions, x);
  if (!tables.local) contexts.windowed.rotary = contexts.full.rotary;
  if (c.flag("chunked")) contexts.full.query_scales = scales_by_position(b, c.integer("length"));
  return contexts;
}

void build_decoder(ForwardBuilder& b, const Configuration& c) {
  if (!decoder_makes_sense(b, c)) return;
  const std::optional<DecoderOptions> options = decoder_options(b, c);
  if (!options || !rotary_makes_sense(b, *options, c.real("rotary"))) return;
  const DecoderOptions& o = *options;
  const TensorId tokens = token_input(b, c);
  std::optional<TensorId> embedding_scale;
  std::optional<Scope> model(std::in_place, b, "model");
  const Embedding embedding(b, "embed_tokens", c.integer("vocab"), o.hidden);
  if (c.flag("scaled_embedding")) embedding_scale = b.buffer("embed_tokens.embed_scale", {});
  std::vector<DecoderLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("layers.{}", i));
    layers.emplace_back(b, o, i);
  }
  const CastingRmsNorm norm(b, "norm", o.hidden, o.eps, o.rms_weight);
  Frequencies frequencies;
  if (c.flag("local_rotary")) frequencies.local = rotary_frequencies(b, "sliding_attention_", o.rotary);
  frequencies.usual = rotary_frequencies(b, c.flag("local_rotary") ? "full_attention_" : "", o.rotary);
  if (c.flag("long_rotary")) frequencies.for_long = b.buffer("rotary_emb.long_inv_freq", {o.rotary / 2});
  model.reset();
  std::optional<Linear> head;
  if (!c.flag("tied")) head.emplace(b, "lm_head", o.hidden, c.integer("vocab"), false);

  model.emplace(b, "model");
  TensorId x = embedding(tokens);
  if (embedding_scale) {
    const Scope scope(b, "embed_tokens");
    x = b.mul(x, b.type_as(*embedding_scale, embedding.weight()));
  }
  const Contexts contexts = make_contexts(b, c, x, frequencies);
  const std::string& pattern = c.text("pattern");
  for (size_t i = 0; i < layers.size(); ++i) {
    x = layers[i](x, pattern[i % pattern.size()] == 's' ? contexts.windowed : contexts.full);
  }
  x = norm(x);
  model.reset();
  x = token_scores(b, x, head, embedding);
  if (c.real("softcap") > 0) x = soft_cap(b, x, c.real("softcap"));
  b.result(x);
}

}  // namespace

Family decoder_family() {
  return {
      .name = "decoder",
      .description = "decoders of the Llama line with their switches (transformers): what config.json files describe",
      .input = InputKind::tokens,
      .flavour = "hf",
      .parameters = with_token_parameters(
          {{"hidden", 4096, "width of the model"},
           {"intermediate", 11008, "width of the feed-forward layers"},
           {"layers", 32, "decoder layers"},
           {"heads", 32, "attention heads"},
           {"kv_heads", 32, "key-value heads"},
           {"head", 0, "width of a head; 0: hidden over heads"},
           {"rotary", 1.0, "part of each head with rotary positions"},
           {"eps", 1e-6, "epsilon of the norms"},
           {"tied", false, "the head shares the embedding's weight"},
           {"qkv_bias", false, "queries, keys and values have biases"},
           {"out_bias", false, "attention's output has a bias"},
           {"mlp_bias", false, "the feed-forward layers have biases"},
           {"fused", false, "one projection for queries, keys and values, one for gate and up (Phi-3)"},
           {"query_norm", "none", "queries and keys normed: none, width, head, head_first, rotated"},
           {"norm_side", "before", "norms stand before, after or on both sides of attention and feed-forward"},
           {"norm_weight", "after_cast", "norms apply their weight after_cast, before_cast or one_plus"},
           {"activation", "silu", "silu, gelu, gelu_pytorch_tanh, gelu_new or relu"},
           {"pattern", "f", "attention layer by layer, repeated: f (full), s (sliding window)"},
           {"window", 0, "tokens of the sliding window"},
           {"chunked", false,
            "layers with a window look back in parts of that many; others have no positions (Llama 4)"},
           {"spare_mask", false, "a mask with a window is made though no layer has one (Qwen 2 MoE)"},
           {"local_rotary", false, "layers with a window have rotary tables of their own (Gemma 3)"},
           {"long_rotary", false, "the length of the sequence chooses between two rotary tables (longrope)"},
           {"scaled_embedding", false, "embeddings are scaled by the root of the width (Gemma)"},
           {"query_scalar", 0.0, "scores are divided by its root; 0: the width of a head"},
           {"attention_softcap", 0.0, "soft cap of the scores; 0: none"},
           {"softcap", 0.0, "soft cap of the logits; 0: none"},
           {"experts", 0, "experts of a feed-forward layer, each as wide as intermediate; 0: no mixture"},
           {"experts_per_token", 1, "experts that a token is sent to"},
           {"shared_expert", 0, "width of an expert that all tokens take, behind a gate (Qwen 2); 0: none"},
           {"routing", "softmax",
            "scores of experts: softmax, scaled_softmax, grouped_softmax, grouped_sigmoid, sigmoid"},
           {"expert_groups", 1, "groups that experts lie in"},
           {"groups_per_token", 1, "of which a token uses the best"},
           {"dense_layers", 0, "first layers that have no experts"},
           {"expert_step", 1, "every so many layers one has experts"},
           {"dense_intermediate", 1, "width of their feed-forward layers"},
           {"query_rank", 0, "latent attention: width that queries are expanded from; 0: they are not"},
           {"key_rank", 0, "latent attention: width that keys and values are expanded from; 0: usual attention"},
           {"plain_head", 0, "latent attention: width of a head without positions; `head` is that with them"},
           {"value_head", 0, "latent attention: width of a value's head"},
           {"latent_rotary", "pairs", "latent attention: positions turn halves, pairs, or pairs as complex numbers"},
           {"normed_scores", false, "scores of the chosen experts are made to sum to 1"},
           {"cast_scores", false, "scores are cast to the type of the router's logits"},
           {"router_last", false, "the router's weight comes behind those of the experts"},
           {"attention_dropout", 0.0, "dropout in attention"},
           {"dropout", 0.0, "dropout behind attention and feed-forward"},
           attention_parameter()},
          1, 2048, 32000),
      .build = build_decoder};
}

}  // namespace forerun::zoo
