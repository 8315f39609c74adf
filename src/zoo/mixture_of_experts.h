// A feed-forward layer of experts, of which a router picks some for each token (transformers 5.22, grouped_mm): tokens are
// sorted by expert, and each projection is one grouped matrix product over all experts.
//
// How many tokens each expert gets is data; shapes do not show it, and grouped products are costed as if tokens were spread
// evenly.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zoo/attention_layers.h"
#include "zoo/gated_feed_forward.h"

namespace forerun::zoo {

struct ExpertOptions {
  int64_t hidden = 0;
  int64_t intermediate = 0;  // of one expert
  int64_t experts = 0;
  int64_t per_token = 0;
  int64_t shared = 0;          // width of an expert that all tokens take, weighed by a gate of its own; 0: none
  bool normed_scores = false;  // the chosen scores are made to sum to 1
  bool cast_scores = false;    // and cast to the type of the router's logits
  bool router_last = false;    // it is registered behind the experts
  std::string activation = "silu";
};

class MixtureOfExperts {
 public:
  MixtureOfExperts(ForwardBuilder& b, std::string_view name, const ExpertOptions& options);
  TensorId operator()(TensorId x) const;  // [batch, length, hidden]

 private:
  // What the router says of each token.
  struct Routing {
    TensorId scores, experts;  // [tokens, per_token]
  };
  [[nodiscard]] Routing route(TensorId tokens) const;
  [[nodiscard]] TensorId run_experts(TensorId tokens, const Routing& routing) const;
  [[nodiscard]] TensorId grouped_product(TensorId x, TensorId weight, TensorId offsets) const;

  ForwardBuilder& b_;
  std::string path_;
  ExpertOptions o_;
  TensorId router_, gate_up_, down_;
  std::optional<GatedFeedForward> shared_;
  std::optional<Linear> shared_gate_;
};

}  // namespace forerun::zoo
