#include "zoo/decoder_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace forerun::zoo {

using Scope = ForwardBuilder::Scope;

namespace {

TensorId numbers_from_zero(ForwardBuilder& b, int64_t length) {
  return b.unary("aten.add.Tensor", arange(b, length), {{"other", int64_t{0}}});
}

// The numbers of queries and keys, as masks compare them.
struct MaskNumbers {
  TensorId query, key;
};

MaskNumbers mask_numbers(ForwardBuilder& b, const MaskOptions& o) {
  const TensorId sample = arange(b, o.batch);
  const TensorId head = arange(b, 1);
  const TensorId queries = numbers_from_zero(b, o.length);
  const TensorId keys = numbers_from_zero(b, o.length);
  along(b, sample, 0);  // of no use where nothing is padded, but made
  along(b, head, 1);
  const TensorId query = along(b, queries, 2);
  return {query, along(b, keys, 3)};
}

// The tanh approximation of GELU, written out: NewGELUActivation.
TensorId written_out_gelu(ForwardBuilder& b, TensorId x) {
  const TensorId half = b.mul_scalar(x, 0.5);
  TensorId inner = b.unary("aten.pow.Tensor_Scalar", x, {{"exponent", 3.0}});
  inner = b.add(x, b.mul_scalar(inner, 0.044715));
  inner = b.mul_scalar(inner, std::sqrt(2.0 / std::numbers::pi));
  return b.mul(half, b.add_scalar(b.unary("aten.tanh.default", inner), 1.0));
}

constexpr std::array kActivations = {"silu", "swish", "gelu", "gelu_pytorch_tanh", "gelu_new", "quick_gelu", "relu"};

TensorId behind_oldest(ForwardBuilder& b, TensorId query, TensorId key, int64_t window) {
  return b.binary("aten.gt.Tensor", key, b.unary("aten.sub.Tensor", query, {{"other", window}}));
}

TensorId same_part(ForwardBuilder& b, TensorId query, TensorId key, int64_t part) {
  const TensorId of_key = b.unary("aten.floor_divide.default", key, {{"other", part}});
  return b.binary("aten.eq.Tensor", of_key, b.unary("aten.floor_divide.default", query, {{"other", part}}));
}

}  // namespace

TensorId seen_keys(ForwardBuilder& b, const MaskOptions& o) {
  const auto [query, key] = mask_numbers(b, o);
  if (o.window == 0) return b.expand(b.binary("aten.le.Tensor", key, query), {o.batch, -1, o.length, o.length});
  const TensorId all = b.opaque("aten.new_ones.default", {query}, {{{}, DType::boolean}}).front();
  const TensorId within = o.chunked ? same_part(b, query, key, o.window) : behind_oldest(b, query, key, o.window);
  const TensorId near = b.binary("aten.bitwise_and.Tensor", all, within);
  const TensorId seen = b.binary("aten.bitwise_and.Tensor", near, b.binary("aten.le.Tensor", key, query));
  return b.expand(seen, {o.batch, -1, o.length, o.length});
}

TensorId added_mask(ForwardBuilder& b, TensorId seen) {
  const TensorId zero = b.create("aten.zeros.default", {}, DType::float32);
  const TensorId lowest = b.create("aten.scalar_tensor.default", {}, DType::float32);
  return b.where(seen, zero, lowest);
}

std::optional<TensorId> decoder_mask(ForwardBuilder& b, TensorId positions, const MaskOptions& options) {
  look_for_packed_sequences(b, positions, options.batch);
  const bool windowed =
      options.window > 0 && (options.chunked ? options.length > options.window : options.length >= options.window);
  if (!options.eager && !windowed) return std::nullopt;
  const TensorId seen = seen_keys(b, options);
  return options.eager ? added_mask(b, seen) : seen;
}

std::optional<TensorId> encoder_mask(ForwardBuilder& b, const MaskOptions& options) {
  if (options.window == 0 || options.length < options.window) return std::nullopt;
  const auto [query, key] = mask_numbers(b, options);
  const TensorId all = b.opaque("aten.new_ones.default", {query}, {{{}, DType::boolean}}).front();
  const TensorId distance = b.unary("aten.abs.default", b.binary("aten.sub.Tensor", query, key));
  const TensorId near = b.unary("aten.le.Scalar", distance, {{"other", options.window}});
  const TensorId seen = b.binary("aten.bitwise_and.Tensor", all, near);
  const TensorId some = b.unary("aten.ge.Scalar", query, {{"other", int64_t{0}}});
  const TensorId kept = b.binary("aten.bitwise_and.Tensor", seen, some);
  return b.expand(kept, {options.batch, -1, options.length, options.length});
}

RotaryTables rotary_tables_of(ForwardBuilder& b, TensorId frequencies, TensorId positions, TensorId like) {
  const Scope scope(b, "rotary_emb");
  const TensorId columns = b.to_dtype(b.unsqueeze(positions, 2), DType::float32);
  const TensorId angles = b.mul(columns, frequencies);
  const TensorId both = b.cat({angles, angles}, -1);
  RotaryTables tables;
  tables.cosine = b.mul_scalar(b.unary("aten.cos.default", both), 1.0);
  tables.sine = b.mul_scalar(b.unary("aten.sin.default", both), 1.0);
  tables.cosine = b.type_as(tables.cosine, like);
  tables.sine = b.type_as(tables.sine, like);
  return tables;
}

TensorId turn_halves(ForwardBuilder& b, TensorId x) {
  const int64_t half = b.extent(x, -1) / 2;
  const TensorId first = b.slice(x, 3, 0, half);
  const TensorId second = b.slice(x, 3, half, kToEnd);
  return b.cat({b.unary("aten.neg.default", second), first}, -1);
}

TensorId rotate_halves(ForwardBuilder& b, TensorId x, const RotaryTables& tables) {
  const TensorId scaled = b.mul(x, tables.cosine);
  return b.add(scaled, b.mul(turn_halves(b, x), tables.sine));
}

CastingRmsNorm::CastingRmsNorm(ForwardBuilder& b, std::string_view name, int64_t features, double eps, RmsWeight weight)
    : b_(b), path_(b.path_of(name)), eps_(eps), kind_(weight) {
  const Scope scope(b, name);
  weight_ = b.parameter("weight", {features});
}

TensorId CastingRmsNorm::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  const TensorId wide = b_.to_dtype(x, DType::float32);
  const TensorId square = b_.unary("aten.pow.Tensor_Scalar", wide, {{"exponent", int64_t{2}}});
  const TensorId scale = b_.unary("aten.rsqrt.default", b_.add_scalar(b_.mean(square, {-1}, true), eps_));
  const TensorId normed = b_.mul(wide, scale);
  switch (kind_) {
    case RmsWeight::after_cast: return b_.mul(weight_, b_.type_as(normed, x));
    case RmsWeight::before_cast: return b_.type_as(b_.mul(weight_, normed), x);
    case RmsWeight::one_plus: break;
  }
  const TensorId factor = b_.add_scalar(b_.to_dtype(weight_, DType::float32), 1.0);
  return b_.type_as(b_.mul(normed, factor), x);
}

bool is_activation(ForwardBuilder& b, const std::string& name) {
  if (std::find(kActivations.begin(), kActivations.end(), name) != kActivations.end()) return true;
  b.fail(fmt::format("activation is '{}'", name), fmt::format("known: {}", fmt::join(kActivations, ", ")));
  return false;
}

TensorId activate(ForwardBuilder& b, const std::string& name, TensorId x) {
  if (name == "gelu") return b.gelu(x);
  if (name == "gelu_pytorch_tanh") return b.gelu(x, true);
  if (name == "gelu_new") return written_out_gelu(b, x);
  if (name == "quick_gelu") return b.mul(x, b.unary("aten.sigmoid.default", b.mul_scalar(x, 1.702)));
  if (name == "relu") return b.relu(x);
  return b.unary("aten.silu.default", x);
}

TensorId soft_cap(ForwardBuilder& b, TensorId x, double cap) {
  const TensorId shrunk = b.unary("aten.div.Tensor", x, {{"other", cap}});
  return b.mul_scalar(b.unary("aten.tanh.default", shrunk), cap);
}

void draw_for_layer_drop(ForwardBuilder& b) {
  const TensorId drawn = b.create("aten.rand.default", {}, DType::float32);
  const TensorId dropped = b.unary("aten.lt.Scalar", drawn, {{"other", 0.0}});
  b.opaque("aten._local_scalar_dense.default", {dropped}, {});
}

TensorId repeat_key_value_heads(ForwardBuilder& b, TensorId x, int64_t times) {
  if (times == 1) return x;
  const Shape s = b.shape(x);
  const TensorId spread = b.expand(b.unsqueeze(x, 2), {s[0], s[1], times, s[2], s[3]});
  return b.reshape(spread, {s[0], s[1] * times, s[2], s[3]});
}

}  // namespace forerun::zoo
