// Amounts on a logarithmic scale, as the features of learned predictors have them.
#pragma once

#include <algorithm>
#include <cmath>

namespace forerun::learn {

inline float log1p_of(double amount) { return static_cast<float>(std::log1p(std::max(amount, 0.0))); }
inline float log2_of(double amount) { return amount > 0 ? static_cast<float>(std::log2(amount)) : 0.0F; }

}  // namespace forerun::learn
