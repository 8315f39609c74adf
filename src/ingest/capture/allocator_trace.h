// AllocatorTrace: every event of PyTorch's caching allocator from before the model was built to the end of the third
// iteration, as a run record holds it.
//
// In run/2 and run/3 addresses are true: units of 512 bytes above address_base. run/1 has ids instead, numbered as they appear,
// which tell blocks apart and say nothing about their order; address_base is then missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace forerun {

struct AllocatorEvent {
  // a alloc, r free requested, f free completed, S segment alloc, X segment free, M map, U unmap, O out of memory
  char action = 'a';
  int64_t address = 0;
  int64_t size = 0;  // bytes asked for
  int64_t stream = 0;
};

struct AllocatorTrace {
  struct Mark {
    uint64_t event = 0;  // the first of the phase
    std::string name;
  };
  std::vector<AllocatorEvent> events;
  std::vector<Mark> marks;
  std::optional<int64_t> address_base;
};

// The sizes that blocks and segments were allocated with, by address: what a free may leave unsaid.
class KnownSizes {
 public:
  // Of a free (r, f, X) of what was allocated before; nothing for other events.
  [[nodiscard]] std::optional<int64_t> size_of(const AllocatorEvent& event) const;
  void take(const AllocatorEvent& event);

 private:
  std::unordered_map<int64_t, int64_t> blocks_, segments_;
};

// Whether the events fit together: a block or segment is freed once, after it was allocated, and with its size; no two
// live blocks share an address; marks are in order. `earlier_blocks`: something was allocated before the trace began,
// so that an address never seen before may be freed.
Status check(const AllocatorTrace& trace, bool earlier_blocks);

}  // namespace forerun
