// The clock that all readings are stamped with: CLOCK_MONOTONIC, the same in every process (Python: time.monotonic_ns).
#pragma once

#include <time.h>

#include <cstdint>

namespace forerun::monitor {

inline int64_t nanoseconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

inline int64_t monotonic_ns() { return nanoseconds_of(CLOCK_MONOTONIC); }

}  // namespace forerun::monitor
