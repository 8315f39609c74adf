#include "store/random_hex.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/check.h"

namespace forerun::store {

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  for (size_t got = 0; got < bytes;) {
    const ssize_t some = getrandom(random.data() + got, bytes - got, 0);
    CHECK(some > 0 || errno == EINTR, "the kernel gives no random bytes");
    if (some > 0) got += static_cast<size_t>(some);
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : random) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace forerun::store
