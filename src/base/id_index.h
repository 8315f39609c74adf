// IdIndex: finds the things of a table by a hash of them.
//
// Open addressing over pairs of hash and id: a look-up reads one or two neighbours, and an entry takes no allocation of its own. The
// things themselves stay in their table, which tells whether two are the same.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace forerun {

// Folds a value into a hash.
inline uint64_t mixed(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15ULL + (hash >> 29U); }

class IdIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  // The id that was added with this hash and for which `same` holds; kNone where there is none.
  template <class Same>
  [[nodiscard]] uint32_t find(uint64_t hash, Same same) const {
    if (slots_.empty()) return kNone;
    const uint32_t key = key_of(hash);
    for (size_t at = key & mask(); slots_[at].id != kNone; at = (at + 1) & mask()) {
      if (slots_[at].key == key && same(slots_[at].id)) return slots_[at].id;
    }
    return kNone;
  }

  // Of a thing that find() did not find.
  void add(uint64_t hash, uint32_t id) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    place({key_of(hash), id});
    ++count_;
  }

 private:
  struct Slot {
    uint32_t key = 0;
    uint32_t id = kNone;
  };
  static constexpr size_t kFewest = 64;

  // The upper half has all of the hash in it.
  static uint32_t key_of(uint64_t hash) { return static_cast<uint32_t>((hash * 0x9e3779b97f4a7c15ULL) >> 32U); }
  [[nodiscard]] size_t mask() const { return slots_.size() - 1; }

  void place(Slot slot) {
    size_t at = slot.key & mask();
    while (slots_[at].id != kNone) at = (at + 1) & mask();
    slots_[at] = slot;
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? kFewest : 2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.id != kNone) place(slot);
    }
  }

  std::vector<Slot> slots_;  // a power of two; at most half are taken
  size_t count_ = 0;
};

}  // namespace forerun
