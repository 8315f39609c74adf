// Attention, by backend: memory-efficient for float32, cuDNN (Hopper) or flash for half precision, and PyTorch's composed
// form ("math") for what none of them takes, such as fewer key-value heads in float32.
#include <algorithm>
#include <cmath>

#include "derive/aten.h"

namespace forerun::derive::aten {
namespace {

// [B, H, T, D] stored as [B, T, H, D]: how these kernels write their results.
Shape head_inner_strides(const Shape& s) { return {s[1] * s[2] * s[3], s[3], s[1] * s[3], 1}; }

struct BackendNames {
  std::string_view forward;
  std::string_view node;
  std::string_view backward;
};

BackendNames names_of(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::efficient:
      return {"aten._scaled_dot_product_efficient_attention.default", "ScaledDotProductEfficientAttentionBackward0",
              "aten._scaled_dot_product_efficient_attention_backward.default"};
    case AttentionBackend::cudnn:
      return {"aten._scaled_dot_product_cudnn_attention.default", "ScaledDotProductCudnnAttentionBackward0",
              "aten._scaled_dot_product_cudnn_attention_backward.default"};
    case AttentionBackend::flash:
    case AttentionBackend::math: break;
  }
  return {"aten._scaled_dot_product_flash_attention.default", "ScaledDotProductFlashAttentionBackward0",
          "aten._scaled_dot_product_flash_attention_backward.default"};
}

// Repeats key and value heads until there are as many as query heads.
Value repeat_heads(Tracer& t, const Value& x, int64_t heads) {
  const int64_t times = heads / std::max<int64_t>(x->sizes[1], 1);
  if (times <= 1) return x;
  Shape wide = x->sizes;
  wide.insert(wide.begin() + 2, times);
  const Value spread = clone_contiguous(t, expand(t, unsqueeze(t, x, 2), wide));
  return view(t, spread, {x->sizes[0], heads, x->sizes[2], x->sizes[3]});
}

// 0 where a query may look, minus infinity where the key comes later.
Value causal_mask(Tracer& t, int64_t rows, int64_t columns, DType dtype) {
  const Value ones = create(t, "aten.ones.default", {rows, columns}, DType::boolean);
  const Value lower = pointwise(t, "aten.tril.default", {ones});
  const Value zero = create(t, "aten.scalar_tensor.default", {}, dtype);
  const Value infinity = create(t, "aten.scalar_tensor.default", {}, dtype);
  return pointwise(t, "aten.where.self", {lower, zero, infinity}, {}, dtype);
}

// Masks of which keys may be looked at, as something to add to the scores.
Value additive_mask(Tracer& t, const Value& mask, DType dtype) {
  if (!mask || mask->dtype != DType::boolean) return mask;
  const Value zero = create(t, "aten.scalar_tensor.default", {}, dtype);
  const Value infinity = create(t, "aten.scalar_tensor.default", {}, dtype);
  return pointwise(t, "aten.where.self", {mask, zero, infinity}, {}, dtype);
}

// In half precision the products are made in float32.
Value math_attention(Tracer& t, Value query, Value key, Value value, Value mask, const Attributes& attributes) {
  const DType asked = query->dtype;
  mask = additive_mask(t, mask, asked);
  const bool half = asked == DType::bfloat16 || asked == DType::float16;
  if (half) {
    query = to_copy(t, query, DType::float32);
    key = to_copy(t, key, DType::float32);
    value = to_copy(t, value, DType::float32);
  }
  const double scale = attributes.get_double("scale", 1 / std::sqrt(static_cast<double>(query->sizes[3])));
  const Attributes root = {{"other", std::sqrt(scale)}};  // shared between both factors, for range
  const Value scaled = unary(t, "aten.mul.Scalar", query, root);
  if (attributes.get_bool("is_causal", false)) mask = causal_mask(t, query->sizes[2], key->sizes[2], query->dtype);
  if (attributes.get_bool("enable_gqa", false)) {
    key = repeat_heads(t, key, query->sizes[1]);
    value = repeat_heads(t, value, query->sizes[1]);
  }
  Value weights = matmul(t, scaled, unary(t, "aten.mul.Scalar", transpose(t, key, -2, -1), root));
  if (mask) weights = add(t, weights, mask);
  weights = safe_softmax(t, weights, -1);
  const double p = attributes.get_double("dropout_p", 0);
  if (p > 0) weights = dropout(t, weights, p);
  const Value result = matmul(t, weights, value);
  if (!half) return result;
  to_copy(t, weights, asked);  // handed back beside the result, which nobody takes
  return to_copy(t, result, asked);
}

// Neither causal by itself nor with fewer heads of keys: what is left out is false.
Attributes without_shortcuts(const Attributes& attributes) {
  Attributes made;
  for (const auto& [name, value] : attributes.entries()) {
    if (name != "is_causal" && name != "enable_gqa") made.set(name, value);
  }
  return made;
}

}  // namespace

AttentionCall traced_attention(Tracer& t, AttentionCall call) {
  if (call.mask || !call.attributes.get_bool("is_causal", false)) return call;
  const Shape& sizes = call.query->sizes;
  call.mask = t.constant(call.query->dtype, {sizes[0], 1, sizes[2], call.key->sizes[2]});
  if (call.attributes.get_bool("enable_gqa", false)) {
    call.key = repeat_heads(t, call.key, sizes[1]);
    call.value = repeat_heads(t, call.value, sizes[1]);
  }
  call.attributes = without_shortcuts(call.attributes);
  return call;
}

Value attention(Tracer& t, AttentionBackend backend, const Value& query, const Value& key, const Value& value,
                const Value& mask, const Attributes& attributes) {
  if (backend == AttentionBackend::math) return math_attention(t, query, key, value, mask, attributes);
  const BackendNames names = names_of(backend);
  Shape sizes = query->sizes;
  sizes[3] = value->sizes[3];
  // cuDNN keeps the layout of the query; the others write heads inside.
  const bool cudnn = backend == AttentionBackend::cudnn;
  const auto layout = [cudnn](const Value& like, const Shape& s) {
    if (!cudnn) return head_inner_strides(s);
    TensorState resized = *like;
    resized.sizes = s;
    return preserved_strides(resized);
  };
  Value y = t.fresh(query->dtype, sizes, layout(query, sizes));
  Shape statistics = {sizes[0], sizes[1], sizes[2]};
  if (cudnn) statistics.push_back(1);
  if (backend == AttentionBackend::efficient) statistics[2] = (statistics[2] + 31) / 32 * 32;  // padded rows
  Value log_sum = t.fresh(DType::float32, statistics);
  Value seed = t.fresh(DType::int64, {});
  Value offset = t.fresh(DType::int64, {});
  Node* node = t.record(names.node, {query, key, value, mask}, {y, log_sum, seed, offset});
  log_sum->history = nullptr;
  Attributes full = {{"compute_log_sumexp", true}};
  for (const auto& [name, v] : attributes.entries()) full.set(name, v);
  t.emit(names.forward, {query, key, value, mask}, {y, log_sum, seed, offset}, full);
  if (node == nullptr) return y;
  const Value kept = t.save_result(y);
  node->backward = [&t, names, query, key, value, mask, kept, log_sum, seed, offset, attributes, layout](Values gs) {
    const Value result = t.unpack_result(kept);
    Values grads = {t.fresh(query->dtype, query->sizes, layout(query, query->sizes)),
                    t.fresh(key->dtype, key->sizes, layout(key, key->sizes)),
                    t.fresh(value->dtype, value->sizes, layout(value, value->sizes))};
    grads.push_back(needs_gradient(mask) ? t.fresh(mask->dtype, mask->sizes) : nullptr);
    t.emit(names.backward, {gs[0], query, key, value, mask, result, log_sum, seed, offset}, grads, attributes);
    return grads;
  };
  return y;
}

}  // namespace forerun::derive::aten
