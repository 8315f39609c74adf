// Autocast: torch.autocast("cuda", bfloat16 or float16). Which ops run in which type, and the cache of cast weights.
#pragma once

#include <map>
#include <optional>

#include "derive/aten.h"

namespace forerun::derive {

class Autocast {
 public:
  // `type`: of products; none: autocast is off.
  Autocast(Tracer& tracer, std::optional<DType> type) : t_(tracer), type_(type) {}

  [[nodiscard]] bool on() const { return type_.has_value(); }
  [[nodiscard]] DType type() const { return type_.value_or(DType::float32); }
  // For products and convolutions. A parameter that is trained is cast once in a context and the copy kept.
  Value lower(const Value& v);
  // Leaving the autocast context: the cast weights go, but for what the backward pass keeps of them.
  void forget_parameters() { cast_parameters_.clear(); }
  // For norms, softmax, losses, powers: float32.
  Value widen(const Value& v);

 private:
  Tracer& t_;
  std::optional<DType> type_;
  std::map<const TensorState*, Value> cast_parameters_;
};

// Elementwise ops that autocast runs in float32: powers, exponentials, logarithms.
bool runs_in_float32(std::string_view op_name);

}  // namespace forerun::derive
