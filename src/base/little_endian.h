// Numbers and short texts as bytes, the lowest first: the same on every machine. `take_` takes them from the front of what
// is left, and says false, with nothing taken, where too little is.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace forerun {

template <class Number>
void put_little(std::string& bytes, Number value) {
  std::array<char, sizeof(Number)> raw = std::bit_cast<std::array<char, sizeof(Number)>>(value);
  if constexpr (std::endian::native == std::endian::big) std::reverse(raw.begin(), raw.end());
  bytes.append(raw.data(), raw.size());
}

// The value whose bytes begin at `from`.
template <class Number>
Number little_at(const char* from) {
  std::array<char, sizeof(Number)> raw;
  std::memcpy(raw.data(), from, raw.size());
  if constexpr (std::endian::native == std::endian::big) std::reverse(raw.begin(), raw.end());
  return std::bit_cast<Number>(raw);
}

template <class Number>
bool take_little(std::string_view& bytes, Number& value) {
  if (bytes.size() < sizeof value) return false;
  value = little_at<Number>(bytes.data());
  bytes.remove_prefix(sizeof value);
  return true;
}

// Of at most 255 bytes.
inline void put_short_text(std::string& bytes, std::string_view text) {
  bytes.push_back(static_cast<char>(text.size()));
  bytes += text;
}

inline bool take_short_text(std::string_view& bytes, std::string& text) {
  if (bytes.empty()) return false;
  const auto length = static_cast<uint8_t>(bytes[0]);
  if (bytes.size() < 1U + length) return false;
  text = bytes.substr(1, length);
  bytes.remove_prefix(1U + length);
  return true;
}

}  // namespace forerun
