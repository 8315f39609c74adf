#include "base/base64.h"

#include <cstdint>

namespace forerun {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

uint32_t byte_at(std::string_view bytes, size_t i) {
  return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
}

// 0 to 63; 64 where it is no digit.
uint32_t digit_value(char digit) {
  if (digit >= 'A' && digit <= 'Z') return static_cast<uint32_t>(digit - 'A');
  if (digit >= 'a' && digit <= 'z') return static_cast<uint32_t>(digit - 'a') + 26;
  if (digit >= '0' && digit <= '9') return static_cast<uint32_t>(digit - '0') + 52;
  return digit == '+' ? 62 : digit == '/' ? 63 : 64;
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t group = byte_at(bytes, i) << 16 | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2);
    text += kDigits[group >> 18];
    text += kDigits[group >> 12 & 63];
    text += i + 1 < bytes.size() ? kDigits[group >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? kDigits[group & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 < text.size() ? 4 : 4 - padding;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const uint32_t value = k < digits ? digit_value(text[i + k]) : 0;
      if (value > 63) return std::nullopt;
      group = group << 6 | value;
    }
    bytes += static_cast<char>(group >> 16 & 255);
    bytes += static_cast<char>(group >> 8 & 255);
    bytes += static_cast<char>(group & 255);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace forerun
