// Fused attention, by backend: memory-efficient for float32, cuDNN (Hopper) or flash for half precision.
#include <algorithm>

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
    case AttentionBackend::flash: break;
  }
  return {"aten._scaled_dot_product_flash_attention.default", "ScaledDotProductFlashAttentionBackward0",
          "aten._scaled_dot_product_flash_attention_backward.default"};
}

}  // namespace

Value attention(Tracer& t, AttentionBackend backend, const Value& query, const Value& key, const Value& value,
                const Value& mask, const Attributes& attributes) {
  const BackendNames names = names_of(backend);
  Shape sizes = query->sizes;
  sizes[3] = value->sizes[3];
  // cuDNN keeps the layout of the query; the others write heads inside.
  const bool cudnn = backend == AttentionBackend::cudnn;
  const auto layout = [cudnn](const Value& like, const Shape& s) {
    return cudnn ? preserved_strides(*like) : head_inner_strides(s);
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
    t.emit(names.backward, {gs[0], query, key, value, mask, result, log_sum, seed, offset}, grads, attributes);
    grads.push_back(nullptr);  // the mask gets none
    return grads;
  };
  return y;
}

}  // namespace forerun::derive::aten
