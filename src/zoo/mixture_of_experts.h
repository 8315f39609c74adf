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

// How the router weighs experts: a softmax of which the best are taken; the same in float32, scaled (DeepSeek V2); of the
// best groups of experts alone (V2 and, with sigmoids and a bias for the choice, V3); by sigmoids in float32 that weigh what an expert
// takes rather than what it gives (Llama 4).
enum class Routing : uint8_t { softmax, scaled_softmax, grouped_softmax, grouped_sigmoid, sigmoid };

struct ExpertOptions {
  int64_t hidden = 0;
  int64_t intermediate = 0;  // of one expert
  int64_t experts = 0;
  int64_t per_token = 0;
  int64_t shared = 0;       // width of an expert that all tokens take; 0: none
  bool shared_gate = true;  // which a gate of its own weighs
  Routing routing = Routing::softmax;
  int64_t groups = 1;            // of experts
  int64_t groups_per_token = 1;  // and of those, how many a token may use
  bool normed_scores = false;    // the chosen scores are made to sum to 1
  bool cast_scores = false;      // and cast to the type of the router's logits
  bool router_last = false;      // it is registered behind the experts
  std::string activation = "silu";
};

class MixtureOfExperts {
 public:
  MixtureOfExperts(ForwardBuilder& b, std::string_view name, const ExpertOptions& options);
  TensorId operator()(TensorId x) const;  // [batch, length, hidden]

 private:
  // What the router says of each token.
  struct Choice {
    TensorId scores, experts;  // [tokens, per_token]
  };
  [[nodiscard]] Choice route(TensorId tokens) const;
  [[nodiscard]] Choice route_scaled(TensorId x) const;
  [[nodiscard]] Choice route_by_sigmoids(TensorId x) const;
  [[nodiscard]] Choice best(TensorId scores) const;
  [[nodiscard]] TensorId of_best_groups(TensorId scores) const;
  [[nodiscard]] TensorId worth_of_groups(TensorId grouped) const;
  [[nodiscard]] TensorId run_flat(TensorId x) const;
  [[nodiscard]] TensorId run_beside_shared(TensorId x) const;
  [[nodiscard]] TensorId run_experts(TensorId tokens, const Choice& choice) const;
  [[nodiscard]] TensorId grouped_product(TensorId x, TensorId weight, TensorId offsets) const;

  ForwardBuilder& b_;
  std::string path_;
  ExpertOptions o_;
  TensorId router_, gate_up_, down_;
  std::optional<TensorId> choice_bias_;
  std::optional<GatedFeedForward> shared_;
  std::optional<Linear> shared_gate_;
};

}  // namespace forerun::zoo
