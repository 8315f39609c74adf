#include "zoo/latent_attention.h"

namespace forerun::zoo {

using Scope = ForwardBuilder::Scope;

namespace {

constexpr double kLatentNormEps = 1e-6;  // of the norms within, whatever the config says

// Neighbours turned as pairs; the two halves of the result hold their firsts and seconds.
TensorId rotate_pairs(ForwardBuilder& b, const std::pair<TensorId, TensorId>& x, const RotaryTables& tables) {
  const auto& [first, second] = x;
  const TensorId kept = b.mul(first, tables.cosine);
  const TensorId left = b.binary("aten.sub.Tensor", kept, b.mul(second, tables.sine));
  const TensorId turned = b.mul(second, tables.cosine);
  return b.cat({left, b.add(turned, b.mul(first, tables.sine))}, -1);
}

std::pair<TensorId, TensorId> neighbours(ForwardBuilder& b, TensorId x) {
  const TensorId first = b.slice(x, 3, 0, kToEnd, 2);
  return {first, b.slice(x, 3, 1, kToEnd, 2)};
}

TensorId as_pairs(ForwardBuilder& b, TensorId x) {
  const Shape s = b.shape(x);
  return b.reshape(b.to_dtype(x, DType::float32), {s[0], s[1], s[2], -1, 2});
}

TensorId rotate_complex(ForwardBuilder& b, TensorId pairs, TensorId table, TensorId like) {
  const TensorId turned =
      b.opaque("forerun.rotate_complex.default", {pairs, table}, {{b.shape(pairs), DType::float32}}).front();
  return b.type_as(b.flatten(turned, 3), like);
}

}  // namespace

TensorId turned_as_complex(ForwardBuilder& b, TensorId x, TensorId table) {
  return rotate_complex(b, as_pairs(b, x), table, x);
}

LatentAttention::LatentAttention(ForwardBuilder& b, std::string_view name, const LatentOptions& options)
    : b_(b), path_(b.path_of(name)), o_(options) {
  const Scope scope(b, name);
  const int64_t head = o_.plain + o_.rotary;
  if (o_.query_rank == 0) {
    query_.emplace(b, "q_proj", o_.hidden, o_.heads * head, false);
  } else {
    query_down_.emplace(b, "q_a_proj", o_.hidden, o_.query_rank, o_.bias);
    query_norm_.emplace(b, "q_a_layernorm", o_.query_rank, kLatentNormEps, RmsWeight::after_cast);
    query_up_.emplace(b, "q_b_proj", o_.query_rank, o_.heads * head, false);
  }
  key_down_.emplace(b, "kv_a_proj_with_mqa", o_.hidden, o_.key_rank + o_.rotary, o_.bias);
  key_norm_.emplace(b, "kv_a_layernorm", o_.key_rank, kLatentNormEps, RmsWeight::after_cast);
  key_up_.emplace(b, "kv_b_proj", o_.key_rank, o_.heads * (o_.plain + o_.value), false);
  out_.emplace(b, "o_proj", o_.heads * o_.value, o_.hidden, o_.bias);
}

TensorId LatentAttention::queries(TensorId x) const {
  return query_ ? (*query_)(x) : (*query_up_)((*query_norm_)((*query_down_)(x)));
}

TensorId LatentAttention::operator()(TensorId x, const RotaryTables& tables, std::optional<TensorId> mask) const {
  const Scope scope(b_, path_, Scope::absolute);
  const int64_t batch = b_.extent(x, 0);
  const int64_t length = b_.extent(x, 1);
  const std::vector<TensorId> query =
      b_.split(split_heads(b_, queries(x), o_.plain + o_.rotary), {o_.plain, o_.rotary}, -1);
  const std::vector<TensorId> narrow = b_.split((*key_down_)(x), {o_.key_rank, o_.rotary}, -1);
  const TensorId latent = b_.view((*key_norm_)(narrow[0]), {batch, 1, length, o_.key_rank});
  const Rotated rotated = rotate(query[1], b_.view(narrow[1], {batch, 1, length, o_.rotary}), tables);
  const TensorId whole_query = b_.cat({query[0], rotated.query}, -1);

  const TensorId wide = b_.view((*key_up_)(latent), {batch, length, -1, o_.plain + o_.value});
  const TensorId expanded = b_.transpose(wide, 1, 2);
  const std::vector<TensorId> key_value = b_.split(expanded, {o_.plain, o_.value}, -1);
  const TensorId key = joined_key(expanded, key_value[0], rotated.key);
  const AttentionOptions options = {
      .mask = mask, .dropout = o_.dropout, .causal = !mask && length > 1, .scale = o_.scale};
  return (*out_)(merge_heads(b_, b_.attention(whole_query, key, key_value[1], options)));
}

LatentAttention::Rotated LatentAttention::rotate(TensorId query, TensorId key, const RotaryTables& tables) const {
  if (o_.kind == LatentRotary::complex) {
    const TensorId query_pairs = as_pairs(b_, query);
    const TensorId key_pairs = as_pairs(b_, key);
    const TensorId table = b_.unsqueeze(tables.cosine, 1);
    const TensorId turned = rotate_complex(b_, query_pairs, table, query);
    return {turned, rotate_complex(b_, key_pairs, table, key)};
  }
  if (o_.kind == LatentRotary::halves) {
    const TensorId cosine = b_.unsqueeze(tables.cosine, 1);
    const RotaryTables spread = {cosine, b_.unsqueeze(tables.sine, 1)};
    const TensorId turned = rotate_halves(b_, query, spread);
    return {turned, rotate_halves(b_, key, spread)};
  }
  const TensorId cosine = b_.unsqueeze(b_.slice(tables.cosine, 2, 0, o_.rotary / 2), 1);
  const RotaryTables spread = {cosine, b_.unsqueeze(b_.slice(tables.sine, 2, 0, o_.rotary / 2), 1)};
  const auto query_pairs = neighbours(b_, query);
  const auto key_pairs = neighbours(b_, key);
  const TensorId turned = rotate_pairs(b_, query_pairs, spread);
  return {turned, rotate_pairs(b_, key_pairs, spread)};
}

// Both parts of the keys are written into an empty tensor; the rotary part is the same for all heads.
TensorId LatentAttention::joined_key(TensorId expanded, TensorId plain, TensorId rotated) const {
  const Shape s = b_.shape(plain);
  const TensorId spread = b_.expand(rotated, {-1, o_.heads, -1, -1});
  const TensorId key =
      b_.opaque("aten.new_empty.default", {expanded}, {{{s[0], s[1], s[2], o_.plain + o_.rotary}, b_.dtype(expanded)}})
          .front();
  b_.binary("aten.copy_.default", b_.slice(key, 3, 0, o_.plain), plain);
  b_.binary("aten.copy_.default", b_.slice(key, 3, o_.plain, kToEnd), spread);
  return key;
}

RotaryTables complex_rotary_table(ForwardBuilder& b, TensorId frequencies, TensorId positions) {
  const Scope scope(b, "rotary_emb");
  const TensorId columns = b.to_dtype(b.unsqueeze(positions, 2), DType::float32);
  const TensorId angles = b.mul(columns, frequencies);
  const TensorId ones = b.unary("aten.ones_like.default", angles);
  const TensorId turns = b.opaque("aten.polar.default", {ones, angles}, {{b.shape(angles), DType::complex64}}).front();
  const TensorId scaled = b.mul_scalar(turns, 1.0);
  return {scaled, scaled};
}

}  // namespace forerun::zoo
