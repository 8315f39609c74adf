#include "zoo/mixture_of_experts.h"

#include "zoo/decoder_parts.h"

namespace forerun::zoo {

using Scope = ForwardBuilder::Scope;

MixtureOfExperts::MixtureOfExperts(ForwardBuilder& b, std::string_view name, const ExpertOptions& options)
    : b_(b), path_(b.path_of(name)), o_(options) {
  const Scope scope(b, name);
  if (!o_.router_last) router_ = b.parameter("gate.weight", {o_.experts, o_.hidden});
  gate_up_ = b.parameter("experts.gate_up_proj", {o_.experts, 2 * o_.intermediate, o_.hidden});
  down_ = b.parameter("experts.down_proj", {o_.experts, o_.hidden, o_.intermediate});
  if (o_.router_last) router_ = b.parameter("gate.weight", {o_.experts, o_.hidden});
  if (o_.shared == 0) return;
  shared_.emplace(b, "shared_expert",
                  GatedOptions{.hidden = o_.hidden, .intermediate = o_.shared, .activation = o_.activation});
  shared_gate_.emplace(b, "shared_expert_gate", o_.hidden, 1, false);
}

TensorId MixtureOfExperts::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  const TensorId tokens = b_.view(x, {-1, o_.hidden});
  std::optional<TensorId> shared;
  if (shared_) shared = (*shared_)(tokens);
  TensorId y = run_experts(tokens, route(tokens));
  if (shared) y = b_.add(y, b_.mul(b_.unary("aten.sigmoid.default", (*shared_gate_)(tokens)), *shared));
  return b_.reshape(y, {b_.extent(x, 0), b_.extent(x, 1), o_.hidden});
}

MixtureOfExperts::Routing MixtureOfExperts::route(TensorId tokens) const {
  const Scope scope(b_, "gate");
  const int64_t count = b_.extent(tokens, 0);
  const TensorId logits = b_.linear(b_.reshape(tokens, {-1, o_.hidden}), router_, std::nullopt);
  const TensorId probabilities = b_.softmax(b_.to_dtype(logits, DType::float32), -1);
  const Shape chosen = {count, o_.per_token};
  const std::vector<TensorId> top = b_.opaque(
      "aten.topk.default", {probabilities}, {{chosen, DType::float32}, {chosen, DType::int64}}, {{"k", o_.per_token}});
  TensorId scores = top[0];
  if (o_.normed_scores) scores = b_.binary("aten.div_.Tensor", scores, b_.sum(scores, {-1}, true));
  if (o_.cast_scores) scores = b_.type_as(scores, logits);
  return {scores, top[1]};
}

TensorId MixtureOfExperts::run_experts(TensorId tokens, const Routing& routing) const {
  const Scope scope(b_, "experts");
  const int64_t count = b_.extent(tokens, 0);
  const int64_t rows = count * o_.per_token;
  const TensorId scores = b_.reshape(routing.scores, {-1});
  const TensorId experts = b_.reshape(routing.experts, {-1});
  const auto sorted = b_.opaque("aten.sort.default", {experts}, {{{rows}, DType::int64}, {{rows}, DType::int64}});
  const TensorId order = sorted[1];
  const TensorId sources = b_.unary("aten.floor_divide.default", order, {{"other", o_.per_token}});
  const TensorId gathered = b_.index(tokens, {sources}, {rows, o_.hidden});
  const TensorId row_scores = b_.index(scores, {order}, {rows});
  const TensorId counted = b_.opaque("aten.histc.default", {b_.to_dtype(sorted[0], DType::int32)},
                                     {{{o_.experts}, DType::int32}}, {{"bins", o_.experts}})[0];
  const TensorId offsets =
      b_.opaque("aten.cumsum.default", {counted}, {{{o_.experts}, DType::int32}}, {{"dim", int64_t{0}}})[0];

  const std::vector<TensorId> parts = b_.chunk(grouped_product(gathered, gate_up_, offsets), 2, -1);
  TensorId gate = parts.front();
  {
    const Scope activation(b_, "act_fn");
    gate = activate(b_, o_.activation, gate);
  }
  const TensorId inner = b_.mul(gate, parts.back());
  const TensorId out = b_.mul(grouped_product(inner, down_, offsets), b_.unsqueeze(row_scores, -1));

  const TensorId places = b_.unary("aten.empty_like.default", order);
  b_.opaque("aten.index_put_.default", {places, order, arange(b_, rows)}, {{{rows}, DType::int64}});
  const TensorId ordered = b_.index(out, {places}, {rows, o_.hidden});
  const TensorId summed = b_.sum(b_.view(ordered, {count, o_.per_token, o_.hidden}), {1}, false);
  return b_.type_as(summed, tokens);
}

TensorId MixtureOfExperts::grouped_product(TensorId x, TensorId weight, TensorId offsets) const {
  const TensorId turned = b_.transpose(weight, -2, -1);
  const Shape result = {b_.extent(x, 0), b_.extent(turned, 2)};
  return b_.opaque("aten._grouped_mm.default", {b_.type_as(x, turned), turned, offsets}, {{result, b_.dtype(weight)}})
      .front();
}

}  // namespace forerun::zoo
