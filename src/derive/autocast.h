// Autocast: torch.autocast("cuda", bfloat16). Which ops run in which type, and the cache of cast weights.
#pragma once

#include <map>

#include "derive/aten.h"

namespace forerun::derive {

class Autocast {
 public:
  Autocast(Tracer& tracer, bool on) : t_(tracer), on_(on) {}

  [[nodiscard]] bool on() const { return on_; }
  // For products and convolutions: bfloat16. A parameter is cast once an iteration and the copy kept.
  Value lower(const Value& v);
  // Leaving the autocast context: the cast weights go, but for what the backward pass keeps of them.
  void forget_parameters() { cast_parameters_.clear(); }
  // For norms, softmax, losses, powers: float32.
  Value widen(const Value& v);

 private:
  Tracer& t_;
  bool on_;
  std::map<const TensorState*, Value> cast_parameters_;
};

// Elementwise ops that autocast runs in float32: powers, exponentials, logarithms.
bool runs_in_float32(std::string_view op_name);

}  // namespace forerun::derive
