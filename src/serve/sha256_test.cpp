#include "serve/sha256.h"

#include <gtest/gtest.h>

namespace forerun::serve {
namespace {

std::string noise(size_t bytes) {
  std::string text;
  uint64_t state = 1;
  for (size_t i = 0; i < bytes; ++i) {
    state = state * 6364136223846793005ULL + 1;
    text += static_cast<char>(state >> 56);
  }
  return text;
}

// FIPS 180-4's examples.
TEST(Sha256, SaysWhatTheStandardSays) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesDoNotMatter) {
  const std::string text = noise(1000);
  const std::string whole = sha256_hex(text);
  for (size_t piece = 1; piece < 200; ++piece) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += piece) hash.add(std::string_view(text).substr(at, piece));
    EXPECT_EQ(hex_of(hash.finish()), whole) << piece;
  }
}

TEST(Sha256, TheProcessorsInstructionsSayTheSame) {
  const std::string text = noise(64 * 100);
  for (const size_t blocks : {0U, 1U, 2U, 7U, 100U}) {
    Sha256State plain = {1, 2, 3, 4, 5, 6, 7, 0xffffffff};
    Sha256State fastest = plain;
    const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
    sha256_blocks_plain(plain, bytes, blocks);
    sha256_blocks()(fastest, bytes, blocks);
    EXPECT_EQ(plain, fastest) << blocks;
  }
}

}  // namespace
}  // namespace forerun::serve
