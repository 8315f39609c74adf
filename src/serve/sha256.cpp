#include "serve/sha256.h"

#include <algorithm>
#include <cstring>

#include "base/base64.h"

namespace forerun::serve {

Sha256& Sha256::add(std::string_view bytes) {
  all_bytes_ += bytes.size();
  const Sha256Blocks blocks = sha256_blocks();
  if (held_bytes_ > 0) {
    const size_t some = std::min(held_.size() - held_bytes_, bytes.size());
    memcpy(held_.data() + held_bytes_, bytes.data(), some);
    held_bytes_ += some;
    bytes.remove_prefix(some);
    if (held_bytes_ < held_.size()) return *this;
    blocks(state_, held_.data(), 1);
    held_bytes_ = 0;
  }
  const size_t whole = bytes.size() / held_.size();
  blocks(state_, reinterpret_cast<const uint8_t*>(bytes.data()),
         whole);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  bytes.remove_prefix(whole * held_.size());
  if (!bytes.empty()) memcpy(held_.data(), bytes.data(), bytes.size());
  held_bytes_ = bytes.size();
  return *this;
}

std::array<uint8_t, 32> Sha256::finish() {
  const uint64_t bits = all_bytes_ * 8;
  add(std::string_view("\x80", 1));
  while (held_bytes_ != 56) add(std::string_view("\0", 1));
  std::string length;
  for (int shift = 56; shift >= 0; shift -= 8) length += static_cast<char>(bits >> shift & 0xff);
  add(length);
  std::array<uint8_t, 32> digest{};
  for (size_t i = 0; i < 32; ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string hex_of(const std::array<uint8_t, 32>& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) { return hex_of(Sha256().add(bytes).finish()); }

std::string sha256_base64(std::string_view bytes) {
  const auto digest = Sha256().add(bytes).finish();
  return to_base64(std::string(digest.begin(), digest.end()));
}

}  // namespace forerun::serve
