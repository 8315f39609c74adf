#include "ingest/kineto/numbers.h"

namespace forerun {
namespace {

constexpr int kMostDigits = 19;       // that fit in 64 bits
constexpr size_t kShortInteger = 18;  // digits that cannot overflow
constexpr size_t kShortTime = 20;     // characters of a time in microseconds since 1970, of which one is the point

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view unquoted(std::string_view token) {
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') return token.substr(1, token.size() - 2);
  return token;
}

// [-]digits[.digits][e[+-]digits], times 10^scale, rounded half away from zero (or cut off).
std::optional<int64_t> scaled(std::string_view text, int scale, bool round) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = p != end && *p == '-';
  if (p != end && (*p == '-' || *p == '+')) ++p;
  const char* const digits = p;
  uint64_t value = 0;
  int taken = 0;       // digits in `value`, leading zeros not counted
  int dropped = 0;     // digits before the point that did not fit
  int after = 0;       // digits in `value` that stood after the point
  int first_lost = 0;  // the first digit left out
  bool any_lost = false;
  bool point = false;
  for (; p != end && (is_digit(*p) || (*p == '.' && !point)); ++p) {
    if (*p == '.') {
      point = true;
    } else if (taken < kMostDigits) {
      value = value * 10 + static_cast<uint64_t>(*p - '0');
      taken += value != 0 ? 1 : 0;
      after += point ? 1 : 0;
    } else {
      if (!any_lost) first_lost = *p - '0';
      any_lost = true;
      dropped += point ? 0 : 1;
    }
  }
  if (p == digits || (p == digits + 1 && point)) return std::nullopt;
  int exponent = 0;
  if (p != end && (*p == 'e' || *p == 'E')) {
    ++p;
    const bool minus = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    if (p == end) return std::nullopt;
    for (; p != end && is_digit(*p); ++p) {
      if (exponent < 1000) exponent = exponent * 10 + (*p - '0');
    }
    if (minus) exponent = -exponent;
  }
  if (p != end) return std::nullopt;
  int shift = scale + exponent - after + dropped;
  bool half = any_lost && first_lost >= 5;
  for (; shift > 0 && value != 0; --shift) {
    if (value > static_cast<uint64_t>(kLongestTime) / 10) return std::nullopt;
    value *= 10;
    half = false;
  }
  for (; shift < 0; ++shift) {
    half = value % 10 >= 5;
    value /= 10;
  }
  if (round && half) ++value;
  if (value > static_cast<uint64_t>(kLongestTime)) return std::nullopt;
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

}  // namespace

// Nearly all times are digits with at most three decimals; the rest goes the general way.
std::optional<int64_t> nanoseconds_of(std::string_view token) {
  const char* p = token.data();
  const char* const end = p + token.size();
  if (token.empty() || token.size() > kShortTime || !is_digit(*p)) return scaled(unquoted(token), 3, true);
  constexpr auto kLongest = static_cast<uint64_t>(kLongestTime);
  uint64_t value = 0;
  while (p != end && is_digit(*p)) value = value * 10 + static_cast<uint64_t>(*p++ - '0');
  int decimals = 0;
  if (p != end && *p == '.') {
    for (++p; p != end && is_digit(*p) && decimals < 3; ++decimals)
      value = value * 10 + static_cast<uint64_t>(*p++ - '0');
  } else if (token.size() == kShortTime) {
    return scaled(token, 3, true);  // twenty digits may overflow
  }
  if (p != end) return scaled(token, 3, true);
  for (; decimals < 3; ++decimals) {
    if (value > kLongest / 10) return std::nullopt;
    value *= 10;
  }
  return value <= kLongest ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
}

std::optional<int64_t> integer_of(std::string_view token) {
  const std::string_view text = unquoted(token);
  if (!text.empty() && text.size() <= kShortInteger && is_digit(text.front())) {
    int64_t value = 0;
    for (const char c : text) {
      if (!is_digit(c)) return scaled(text, 0, false);
      value = value * 10 + (c - '0');
    }
    return value;
  }
  return scaled(text, 0, false);
}

}  // namespace forerun
