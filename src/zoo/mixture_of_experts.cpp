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
  if (o_.routing == Routing::grouped_sigmoid) choice_bias_ = b.buffer("gate.e_score_correction_bias", {o_.experts});
  if (o_.shared == 0) return;
  shared_.emplace(b, o_.shared_gate ? "shared_expert" : "shared_experts",
                  GatedOptions{.hidden = o_.hidden, .intermediate = o_.shared, .activation = o_.activation});
  if (o_.shared_gate) shared_gate_.emplace(b, "shared_expert_gate", o_.hidden, 1, false);
}

TensorId MixtureOfExperts::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  return o_.routing == Routing::softmax ? run_flat(x) : run_beside_shared(x);
}

TensorId MixtureOfExperts::run_flat(TensorId x) const {
  const TensorId tokens = b_.view(x, {-1, o_.hidden});
  std::optional<TensorId> shared;
  if (shared_) shared = (*shared_)(tokens);
  TensorId y = run_experts(tokens, route(tokens));
  if (shared) y = b_.add(y, b_.mul(b_.unary("aten.sigmoid.default", (*shared_gate_)(tokens)), *shared));
  return b_.reshape(y, b_.shape(x));
}

TensorId MixtureOfExperts::run_beside_shared(TensorId x) const {
  const Choice choice = o_.routing == Routing::sigmoid ? route_by_sigmoids(x) : route_scaled(x);
  const TensorId y = b_.view(run_experts(b_.view(x, {-1, o_.hidden}), choice), b_.shape(x));
  return shared_ ? b_.add(y, (*shared_)(x)) : y;
}

MixtureOfExperts::Choice MixtureOfExperts::best(TensorId scores) const {
  const Shape chosen = {b_.extent(scores, 0), o_.per_token};
  const std::vector<TensorId> top = b_.opaque(
      "aten.topk.default", {scores}, {{chosen, b_.dtype(scores)}, {chosen, DType::int64}}, {{"k", o_.per_token}});
  return {top[0], top[1]};
}

MixtureOfExperts::Choice MixtureOfExperts::route(TensorId tokens) const {
  const Scope scope(b_, "gate");
  const TensorId logits = b_.linear(b_.reshape(tokens, {-1, o_.hidden}), router_, std::nullopt);
  Choice choice = best(b_.softmax(b_.to_dtype(logits, DType::float32), -1));
  if (o_.normed_scores) choice.scores = b_.binary("aten.div_.Tensor", choice.scores, b_.sum(choice.scores, {-1}, true));
  if (o_.cast_scores) choice.scores = b_.type_as(choice.scores, logits);
  return choice;
}

MixtureOfExperts::Choice MixtureOfExperts::route_scaled(TensorId x) const {
  const Scope scope(b_, "gate");
  const TensorId tokens = b_.to_dtype(b_.view(x, {-1, o_.hidden}), DType::float32);
  const TensorId logits = b_.linear(tokens, b_.to_dtype(router_, DType::float32), std::nullopt);
  Choice choice;
  if (o_.routing == Routing::grouped_sigmoid) {
    const TensorId scores = b_.unary("aten.sigmoid.default", logits);
    choice.experts = best(of_best_groups(b_.add(scores, *choice_bias_))).experts;
    choice.scores = b_.gather(scores, 1, choice.experts);
    if (o_.normed_scores) {
      const TensorId sums = b_.add_scalar(b_.sum(choice.scores, {-1}, true), 1e-20);
      choice.scores = b_.binary("aten.div_.Tensor", choice.scores, sums);
    }
  } else {
    const TensorId scores = b_.softmax(b_.to_dtype(logits, DType::float32), -1);
    choice = best(o_.routing == Routing::grouped_softmax ? of_best_groups(scores) : scores);
  }
  choice.scores = b_.mul_scalar(choice.scores, 1.0);  // by routed_scaling_factor
  return choice;
}

MixtureOfExperts::Choice MixtureOfExperts::route_by_sigmoids(TensorId x) const {
  const Scope scope(b_, "gate");
  const TensorId logits = b_.linear(b_.view(x, {-1, o_.hidden}), router_, std::nullopt);
  return best(b_.unary("aten.sigmoid.default", b_.to_dtype(logits, DType::float32)));
}

// The scores, with those of groups that a token may not use overwritten.
TensorId MixtureOfExperts::of_best_groups(TensorId scores) const {
  const int64_t count = b_.extent(scores, 0);
  const int64_t size = o_.experts / o_.groups;
  const TensorId worth = worth_of_groups(b_.view(scores, {-1, o_.groups, size}));
  const Shape chosen = {count, o_.groups_per_token};
  const TensorId places = b_.opaque("aten.topk.default", {worth}, {{chosen, b_.dtype(worth)}, {chosen, DType::int64}},
                                    {{"k", o_.groups_per_token}})[1];
  const TensorId mask = b_.unary("aten.zeros_like.default", worth);
  b_.opaque("aten.scatter_.value", {mask, places}, {{b_.shape(mask), b_.dtype(mask)}});
  const TensorId spread = b_.expand(b_.unsqueeze(mask, -1), {-1, o_.groups, size});
  const TensorId inside = b_.to_dtype(b_.reshape(spread, {-1, o_.experts}), DType::boolean);
  const TensorId outside = b_.unary("aten.bitwise_not.default", inside);
  return b_.opaque("aten.masked_fill.Scalar", {scores, outside}, {{b_.shape(scores), b_.dtype(scores)}}).front();
}

// A group is worth its best expert, or its best two (V3): [tokens, groups].
TensorId MixtureOfExperts::worth_of_groups(TensorId grouped) const {
  const int64_t count = b_.extent(grouped, 0);
  const DType type = b_.dtype(grouped);
  if (o_.routing == Routing::grouped_softmax) {
    const Shape one = {count, o_.groups};
    return b_.opaque("aten.max.dim", {grouped}, {{one, type}, {one, DType::int64}}, {{"dim", int64_t{-1}}}).front();
  }
  const Shape two = {count, o_.groups, 2};
  const TensorId best_two =
      b_.opaque("aten.topk.default", {grouped}, {{two, type}, {two, DType::int64}}, {{"k", int64_t{2}}}).front();
  return b_.sum(best_two, {-1}, false);
}

TensorId MixtureOfExperts::run_experts(TensorId tokens, const Choice& choice) const {
  const Scope scope(b_, "experts");
  const int64_t count = b_.extent(tokens, 0);
  const int64_t rows = count * o_.per_token;
  const TensorId scores = b_.reshape(choice.scores, {-1});
  const TensorId experts = b_.reshape(choice.experts, {-1});
  const auto sorted = b_.opaque("aten.sort.default", {experts}, {{{rows}, DType::int64}, {{rows}, DType::int64}});
  const TensorId order = sorted[1];
  const TensorId sources = b_.unary("aten.floor_divide.default", order, {{"other", o_.per_token}});
  TensorId gathered = b_.index(tokens, {sources}, {rows, o_.hidden});
  const TensorId row_scores = b_.index(scores, {order}, {rows});
  const bool weighs_input = o_.routing == Routing::sigmoid;
  if (weighs_input) {
    const TensorId wide = b_.to_dtype(gathered, DType::float32);
    gathered = b_.type_as(b_.mul(wide, b_.unsqueeze(row_scores, -1)), tokens);
  }
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
  TensorId out = grouped_product(inner, down_, offsets);
  if (!weighs_input) out = b_.mul(out, b_.unsqueeze(row_scores, -1));

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
