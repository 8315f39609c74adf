#include "zoo/attention_layers.h"

#include <fmt/format.h>

namespace forerun::zoo {

using Scope = ForwardBuilder::Scope;

std::vector<Parameter> with_token_parameters(std::vector<Parameter> own, int64_t batch, int64_t length, int64_t vocab) {
  own.push_back({"batch", batch, "sequences in a batch"});
  own.push_back({"length", length, "tokens in a sequence"});
  own.push_back({"vocab", vocab, "size of the vocabulary"});
  return own;
}

TensorId token_input(ForwardBuilder& b, const Configuration& c) {
  return b.input("x", {c.integer("batch"), c.integer("length")}, DType::int64);
}

bool within(ForwardBuilder& b, const Configuration& c, std::initializer_list<const char*> names, int64_t low,
            int64_t high) {
  bool fine = true;
  for (const char* name : names) {
    const int64_t value = c.integer(name);
    if (value >= low && value <= high) continue;
    b.fail(fmt::format("{} is {}", name, value), fmt::format("set {} to between {} and {}", name, low, high));
    fine = false;
  }
  return fine;
}

bool heads_divide(ForwardBuilder& b, int64_t heads, int64_t width) {
  if (heads >= 1 && width % heads == 0) return true;
  b.fail(fmt::format("{} heads do not divide a width of {}", heads, width), "choose heads that divide the width");
  return false;
}

bool fits_positions(ForwardBuilder& b, const Configuration& c) {
  if (c.integer("length") <= c.integer("positions")) return true;
  b.fail(fmt::format("{} tokens are more than {} positions", c.integer("length"), c.integer("positions")),
         "use a shorter length or more positions");
  return false;
}

bool is_dropout(ForwardBuilder& b, double p) {
  if (p >= 0 && p < 1) return true;
  b.fail(fmt::format("dropout is {}", p), "set dropout to at least 0 and below 1");
  return false;
}

TensorId alias(ForwardBuilder& b, TensorId x) { return b.unary("aten.alias.default", x); }

TensorId take_first(ForwardBuilder& b, TensorId x, int64_t dim, int64_t end) {
  return end >= b.extent(x, dim) ? alias(b, x) : b.slice(x, dim, 0, end);
}

TensorId token_scores(ForwardBuilder& b, TensorId hidden, const std::optional<Linear>& own_head,
                      const Embedding& words) {
  const TensorId kept = alias(b, hidden);  // hidden_states[:, 0:, :]
  if (own_head) return (*own_head)(kept);
  const ForwardBuilder::Scope scope(b, "lm_head");
  return b.linear(kept, words.weight(), std::nullopt);
}

void squared_error_result(ForwardBuilder& b, TensorId prediction, std::string_view target) {
  const TensorId wanted = b.input(target, b.shape(prediction));
  b.result(b.opaque("aten.mse_loss.default", {prediction, wanted}, {{Shape{}, DType::float32}}).front());
}

TensorId arange(ForwardBuilder& b, int64_t length) {
  return b.create("aten.arange.default", {length}, DType::int64, {{"end", length}});
}

TensorId along(ForwardBuilder& b, TensorId x, int64_t dim) {
  for (int64_t i = 0; i < 4; ++i) {
    if (i != dim) x = b.unsqueeze(x, i);
  }
  return x;
}

TensorId position_numbers(ForwardBuilder& b, int64_t length) {
  const TensorId numbers = b.unary("aten.add.Tensor", arange(b, length), {{"other", int64_t{0}}});
  return b.unsqueeze(numbers, 0);
}

void look_for_packed_sequences(ForwardBuilder& b, TensorId positions, int64_t batch) {
  if (batch != b.extent(positions, 0)) positions = b.expand(positions, {batch, -1});
  const int64_t length = b.extent(positions, 1);
  const TensorId before = b.unary("aten.sub.Tensor", take_first(b, positions, 1, 1), {{"other", int64_t{1}}});
  const TensorId all = b.cat({before, positions}, -1);
  const TensorId earlier = b.slice(all, -1, 0, length);
  const TensorId later = b.slice(all, -1, 1, length + 1);
  const TensorId step = b.binary("aten.sub.Tensor", later, earlier);
  const TensorId jumps = b.unary("aten.ne.Scalar", step, {{"other", int64_t{1}}});
  const TensorId count =
      b.opaque("aten.cumsum.default", {jumps}, {{{batch, length}, DType::int64}}, {{"dim", int64_t{-1}}})[0];
  const TensorId whole = b.unary("aten.eq.Scalar", b.select(count, 1, -1), {{"other", int64_t{0}}});
  const TensorId answer = b.opaque("aten.all.default", {whole}, {{{}, DType::boolean}})[0];
  b.opaque("aten._local_scalar_dense.default", {answer}, {});
}

TensorId split_heads(ForwardBuilder& b, TensorId x, int64_t head) {
  return b.transpose(b.view(x, {b.extent(x, 0), b.extent(x, 1), -1, head}), 1, 2);
}

TensorId merge_heads(ForwardBuilder& b, TensorId x) {
  x = b.contiguous(b.transpose(x, 1, 2));
  return b.reshape(x, {b.extent(x, 0), b.extent(x, 1), -1});
}

bool is_eager(const Configuration& c) { return c.text("attention") == "eager"; }

bool is_attention(ForwardBuilder& b, const Configuration& c) {
  if (is_eager(c) || c.text("attention") == "sdpa") return true;
  b.fail(fmt::format("attention is '{}'", c.text("attention")), "set attention to sdpa or eager");
  return false;
}

Parameter attention_parameter() {
  return {"attention", "sdpa", "sdpa (one op) or eager (products, masks and softmax apart)"};
}

TensorId eager_attention(ForwardBuilder& b, TensorId query, TensorId key, TensorId value,
                         const EagerAttention& options) {
  TensorId scores = b.mul_scalar(b.matmul(query, b.transpose(key, 2, 3)), options.scale);
  for (const TensorId addend : options.addends) scores = b.add(scores, addend);
  TensorId weights = b.softmax(scores, -1);
  if (options.dropout > 0) weights = b.dropout(weights, options.dropout);
  return b.matmul(weights, value);
}

TensorId causal_mask(ForwardBuilder& b, int64_t batch, int64_t length) {
  const TensorId sample = arange(b, batch);
  const TensorId head = arange(b, 1);
  const TensorId queries = b.unary("aten.add.Tensor", arange(b, length), {{"other", int64_t{0}}});
  const TensorId keys = b.unary("aten.add.Tensor", arange(b, length), {{"other", int64_t{0}}});
  along(b, sample, 0);  // of no use where nothing is padded, but made
  along(b, head, 1);
  const TensorId query = along(b, queries, 2);
  const TensorId key = along(b, keys, 3);
  const TensorId seen = b.expand(b.binary("aten.le.Tensor", key, query), {batch, -1, length, length});
  const TensorId zero = b.create("aten.lift_fresh.default", {}, DType::float32, {{"on_gpu", true}});
  const TensorId lowest = b.create("aten.scalar_tensor.default", {}, DType::float32);
  return b.where(seen, zero, lowest);
}

TensorId padding_mask(ForwardBuilder& b, TensorId given) {
  const TensorId kept = b.to_dtype(b.unsqueeze(b.unsqueeze(given, 1), 2), DType::float32);
  const TensorId padded = b.unary("aten.sub.Tensor", kept, {{"other", 1.0}});  // 0 or -1
  return b.mul_scalar(padded, std::numeric_limits<float>::max());
}

Mlp::Mlp(ForwardBuilder& b, int64_t width, int64_t inner)
    : b_(b), activation_path_(b.path_of("mlp.1")), inner_(b, "mlp.0", width, inner), outer_(b, "mlp.3", inner, width) {}

TensorId Mlp::operator()(TensorId x) const {
  x = inner_(x);
  {
    const ForwardBuilder::Scope scope(b_, activation_path_, ForwardBuilder::Scope::absolute);
    x = b_.gelu(x);
  }
  return outer_(x);
}

RmsNorm::RmsNorm(ForwardBuilder& b, std::string_view name, int64_t features, double eps)
    : b_(b), path_(b.path_of(name)), eps_(eps) {
  const Scope scope(b, name);
  weight_ = b.parameter("weight", {features});
}

TensorId RmsNorm::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  const TensorId wide = b_.to_dtype(x, DType::float32);
  const TensorId square = b_.unary("aten.pow.Tensor_Scalar", wide, {{"exponent", int64_t{2}}});
  const TensorId variance = b_.mean(square, {-1}, true);
  const TensorId scale = b_.unary("aten.rsqrt.default", b_.add_scalar(variance, eps_));
  return b_.mul(weight_, b_.type_as(b_.mul(wide, scale), x));
}

}  // namespace forerun::zoo
