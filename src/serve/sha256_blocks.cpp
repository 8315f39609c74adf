#include "serve/sha256_blocks.h"

#include <bit>

// Clang has Arm's instructions only where the whole program may use them.
#if defined(__aarch64__) && defined(__linux__) && (!defined(__clang__) || defined(__ARM_FEATURE_SHA2))
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define FORERUN_SHA256_ARM
#elif defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define FORERUN_SHA256_X86
#endif

namespace forerun::serve {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void one_block(Sha256State& state, const uint8_t* bytes) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i) {
    w[i] = static_cast<uint32_t>(bytes[4 * i]) << 24 | static_cast<uint32_t>(bytes[4 * i + 1]) << 16 |
           static_cast<uint32_t>(bytes[4 * i + 2]) << 8 | static_cast<uint32_t>(bytes[4 * i + 3]);
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t one =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const Sha256State now = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += now[i];
}

#ifdef FORERUN_SHA256_ARM

#ifndef __clang__
__attribute__((target("+crypto")))
#endif
void blocks_of_processor(Sha256State& state, const uint8_t* bytes, size_t blocks) {
  uint32x4_t abcd = vld1q_u32(state.data()), efgh = vld1q_u32(state.data() + 4);
  for (; blocks > 0; --blocks, bytes += 64) {
    const uint32x4_t first = abcd, second = efgh;
    uint32x4_t w[4];
    for (size_t i = 0; i < 4; ++i) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes + 16 * i)));
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; ++i) {
      const uint32x4_t sum = vaddq_u32(w[i % 4], vld1q_u32(kRound.data() + 4 * i));
      const uint32x4_t before = abcd;
      abcd = vsha256hq_u32(abcd, efgh, sum);
      efgh = vsha256h2q_u32(efgh, before, sum);
      if (i >= 12) continue;
      w[i % 4] = vsha256su1q_u32(vsha256su0q_u32(w[i % 4], w[(i + 1) % 4]), w[(i + 2) % 4], w[(i + 3) % 4]);
    }
    abcd = vaddq_u32(abcd, first);
    efgh = vaddq_u32(efgh, second);
  }
  vst1q_u32(state.data(), abcd);
  vst1q_u32(state.data() + 4, efgh);
}

bool processor_has_it() { return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0; }

#elif defined(FORERUN_SHA256_X86)

__attribute__((target("sha,sse4.1"))) void blocks_of_processor(Sha256State& state, const uint8_t* bytes,
                                                               size_t blocks) {
  const auto load = [](const void* from) __attribute__((target("sha,sse4.1"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  const __m128i swapped = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  // The instructions take the state as ABEF and CDGH.
  const __m128i low = _mm_shuffle_epi32(load(state.data()), 0xB1);
  const __m128i high = _mm_shuffle_epi32(load(state.data() + 4), 0x1B);
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xF0);
  for (; blocks > 0; --blocks, bytes += 64) {
    const __m128i first = abef, second = cdgh;
    __m128i w[4];
    for (size_t i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(bytes + 16 * i), swapped);
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; ++i) {
      const __m128i sum = _mm_add_epi32(w[i % 4], load(kRound.data() + 4 * i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
      if (i >= 12) continue;
      const __m128i seventh = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
      w[i % 4] =
          _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]), seventh), w[(i + 3) % 4]);
    }
    abef = _mm_add_epi32(abef, first);
    cdgh = _mm_add_epi32(cdgh, second);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  const auto store = [](void* to, __m128i value) __attribute__((target("sha,sse4.1"))) {
    _mm_storeu_si128(static_cast<__m128i*>(to), value);
  };
  store(state.data(), _mm_blend_epi16(feba, dchg, 0xF0));
  store(state.data() + 4, _mm_alignr_epi8(dchg, feba, 8));
}

bool processor_has_it() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0 || (c & bit_SSSE3) == 0) return false;
  constexpr unsigned kSha = 1U << 29;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0;
}

#else

void blocks_of_processor(Sha256State& state, const uint8_t* bytes, size_t blocks) {
  sha256_blocks_plain(state, bytes, blocks);
}
bool processor_has_it() { return false; }

#endif

}  // namespace

void sha256_blocks_plain(Sha256State& state, const uint8_t* bytes, size_t blocks) {
  for (; blocks > 0; --blocks, bytes += 64) one_block(state, bytes);
}

Sha256Blocks sha256_blocks() {
  static const Sha256Blocks fastest = processor_has_it() ? blocks_of_processor : sha256_blocks_plain;
  return fastest;
}

}  // namespace forerun::serve
