// down(act(gate(x)) * up(x)): the feed-forward layer of decoders of the Llama line, and the expert that all tokens share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "zoo/layers.h"

namespace forerun::zoo {

struct GatedOptions {
  int64_t hidden = 0;
  int64_t intermediate = 0;
  bool bias = false;
  bool fused = false;  // one projection for gate and up (Phi-3)
  std::string activation = "silu";
};

class GatedFeedForward {
 public:
  GatedFeedForward(ForwardBuilder& b, std::string_view name, const GatedOptions& options);
  TensorId operator()(TensorId x) const;

 private:
  [[nodiscard]] TensorId activated(std::string_view module, TensorId x) const;

  ForwardBuilder& b_;
  std::string path_;
  GatedOptions o_;
  std::optional<Linear> gate_, up_, down_;  // fused: gate_ makes both
};

}  // namespace forerun::zoo
