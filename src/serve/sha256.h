// SHA-256 (FIPS 180-4): names uploads by their content, tells the page's script and style to the browser.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "serve/sha256_blocks.h"

namespace forerun::serve {

class Sha256 {
 public:
  Sha256& add(std::string_view bytes);
  std::array<uint8_t, 32> finish();

 private:
  Sha256State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> held_{};
  size_t held_bytes_ = 0;
  uint64_t all_bytes_ = 0;
};

std::string hex_of(const std::array<uint8_t, 32>& digest);
std::string sha256_hex(std::string_view bytes);
std::string sha256_base64(std::string_view bytes);

}  // namespace forerun::serve
