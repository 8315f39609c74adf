#include "derive/autocast.h"

#include <algorithm>
#include <array>

namespace forerun::derive {

Value Autocast::lower(const Value& v) {
  if (!on() || !v || !is_floating(v->dtype) || v->dtype == *type_ || v->dtype == DType::float64) return v;
  if (!v->is_leaf || v->dtype != DType::float32) return aten::to_copy(t_, v, *type_);
  Value& cast = cast_parameters_[v.get()];
  if (!cast) cast = aten::to_copy(t_, v, *type_);
  return cast;
}

Value Autocast::widen(const Value& v) {
  if (!on() || !v || (v->dtype != DType::bfloat16 && v->dtype != DType::float16)) return v;
  return aten::to_copy(t_, v, DType::float32);
}

bool runs_in_float32(std::string_view op_name) {
  static constexpr std::array kOps = {"aten.pow.",  "aten.exp.",   "aten.expm1.", "aten.log.",        "aten.log10.",
                                      "aten.log2.", "aten.log1p.", "aten.rsqrt.", "aten.reciprocal.", "aten.softplus.",
                                      "aten.acos.", "aten.asin.",  "aten.cosh.",  "aten.sinh.",       "aten.tan."};
  return std::any_of(kOps.begin(), kOps.end(), [&](std::string_view prefix) { return op_name.starts_with(prefix); });
}

}  // namespace forerun::derive
