#include "zoo/gated_feed_forward.h"

#include "zoo/decoder_parts.h"

namespace forerun::zoo {

using Scope = ForwardBuilder::Scope;

GatedFeedForward::GatedFeedForward(ForwardBuilder& b, std::string_view name, const GatedOptions& options)
    : b_(b), path_(b.path_of(name)), o_(options) {
  const Scope scope(b, name);
  if (o_.fused) {
    gate_.emplace(b, "gate_up_proj", o_.hidden, 2 * o_.intermediate, o_.bias);
  } else {
    gate_.emplace(b, "gate_proj", o_.hidden, o_.intermediate, o_.bias);
    up_.emplace(b, "up_proj", o_.hidden, o_.intermediate, o_.bias);
  }
  down_.emplace(b, "down_proj", o_.intermediate, o_.hidden, o_.bias);
}

TensorId GatedFeedForward::operator()(TensorId x) const {
  const Scope scope(b_, path_, Scope::absolute);
  if (o_.fused) {
    const std::vector<TensorId> parts = b_.chunk((*gate_)(x), 2, -1);
    const TensorId gate = activated("activation_fn", parts.front());
    return (*down_)(b_.mul(parts.back(), gate));
  }
  const TensorId gate = activated("act_fn", (*gate_)(x));
  return (*down_)(b_.mul(gate, (*up_)(x)));
}

TensorId GatedFeedForward::activated(std::string_view module, TensorId x) const {
  const Scope scope(b_, module);
  return activate(b_, o_.activation, x);
}

}  // namespace forerun::zoo
