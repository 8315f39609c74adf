// Typed quantities: simulated time in whole nanoseconds, sizes in bytes, work in floating-point operations.
//
// A quantity adds and compares with its own kind and scales by a plain number; mixing kinds does not compile.
#pragma once

#include <compare>
#include <cstdint>

namespace forerun {

template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value + b.value); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value - b.value); }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.value * k); }
};

using Nanoseconds = Quantity<struct NanosecondsTag, int64_t>;
using Bytes = Quantity<struct BytesTag, int64_t>;
using Flops = Quantity<struct FlopsTag, double>;  // double: a large run has more than 2^63 of them

constexpr double milliseconds(Nanoseconds t) { return static_cast<double>(t.value) * 1e-6; }
constexpr double microseconds(Nanoseconds t) { return static_cast<double>(t.value) * 1e-3; }
constexpr Nanoseconds nanoseconds_from_us(double us) { return Nanoseconds(static_cast<int64_t>(us * 1e3 + 0.5)); }
constexpr double gibibytes(Bytes b) { return static_cast<double>(b.value) / (1024.0 * 1024.0 * 1024.0); }

}  // namespace forerun
