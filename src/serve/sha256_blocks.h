// The rounds of SHA-256 over blocks of 64 bytes: by the processor's own instructions where it has them, which take a tenth of the
// time. An upload of a gigabyte is hashed as it comes in, and what hashes it serves all connections.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace forerun::serve {

using Sha256State = std::array<uint32_t, 8>;
using Sha256Blocks = void (*)(Sha256State& state, const uint8_t* bytes, size_t blocks);

// On any processor.
void sha256_blocks_plain(Sha256State& state, const uint8_t* bytes, size_t blocks);
// The fastest of this one.
Sha256Blocks sha256_blocks();

}  // namespace forerun::serve
