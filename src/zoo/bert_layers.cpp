#include "zoo/bert_layers.h"

#include <cmath>

#include "zoo/decoder_parts.h"

namespace forerun::zoo {

using Scope = ForwardBuilder::Scope;

ResidualOutput::ResidualOutput(ForwardBuilder& b, std::string_view name, int64_t in, const BertSizes& s)
    : b_(b),
      path_(b.path_of(name)),
      dense_(b, std::string(name) + ".dense", in, s.hidden),
      norm_(b, std::string(name) + ".LayerNorm", s.hidden, s.eps),
      dropout_(b, std::string(name) + ".dropout", s.dropout) {}

TensorId ResidualOutput::operator()(TensorId x, TensorId residual) const {
  const Scope scope(b_, path_, Scope::absolute);
  return norm_(b_.add(dropout_(dense_(x)), residual));
}

BertLayer::BertLayer(ForwardBuilder& b, const BertSizes& s)
    : b_(b),
      path_(b.path_of("")),
      sizes_(s),
      query_(b, "attention.self.query", s.hidden, s.hidden),
      key_(b, "attention.self.key", s.hidden, s.hidden),
      value_(b, "attention.self.value", s.hidden, s.hidden),
      attention_output_(b, "attention.output", s.hidden, s),
      intermediate_(b, "intermediate.dense", s.hidden, s.intermediate),
      output_(b, "output", s.intermediate, s) {}

TensorId BertLayer::operator()(TensorId x, std::optional<TensorId> mask) const {
  const Scope scope(b_, path_, Scope::absolute);
  x = attention_output_(attend(x, mask), x);
  return output_(activated(intermediate_(x)), x);
}

TensorId BertLayer::attend(TensorId x, std::optional<TensorId> mask) const {
  const Scope scope(b_, "attention.self");
  const int64_t head = sizes_.hidden / sizes_.heads;
  const TensorId query = split_heads(b_, query_(x), head);
  const TensorId key = split_heads(b_, key_(x), head);
  const TensorId value = split_heads(b_, value_(x), head);
  const double scale = std::pow(static_cast<double>(head), -0.5);
  if (mask) {
    const EagerAttention eager = {.scale = scale, .dropout = sizes_.attention_dropout, .addends = {*mask}};
    return merge_heads(b_, eager_attention(b_, query, key, value, eager));
  }
  const AttentionOptions options = {.mask = {}, .dropout = sizes_.attention_dropout, .scale = scale};
  return merge_heads(b_, b_.attention(query, key, value, options));
}

TensorId BertLayer::activated(TensorId x) const {
  const Scope scope(b_, "intermediate.intermediate_act_fn");
  return activate(b_, sizes_.activation, x);
}

}  // namespace forerun::zoo
