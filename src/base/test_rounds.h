// For tests: how often a property is tried on random input. A tenth under the sanitizers, where each round takes ten times as
// long: rounds with other seeds run the same code.
#pragma once

#include <cstdint>

namespace forerun {

#ifdef FORERUN_SANITIZED
constexpr uint32_t test_rounds(uint32_t rounds) { return rounds < 10 ? 1 : rounds / 10; }
#else
constexpr uint32_t test_rounds(uint32_t rounds) { return rounds; }
#endif

}  // namespace forerun
