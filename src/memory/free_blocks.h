// FreeBlocks: the free blocks of one pool and stream, in order of size and then of address.
//
// A sorted list in chunks of at most 64: with few free blocks, as in training, it is one short array; with very many,
// inserting moves a chunk and not the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace forerun {

struct FreeBlock {
  int64_t size = 0;
  int64_t address = 0;
  uint32_t block = 0;  // the allocator's own number
};

class FreeBlocks {
 public:
  struct Place {
    size_t chunk = 0;
    size_t slot = 0;
  };

  void insert(const FreeBlock& block);
  // The block with this size and address, which must be there.
  void erase(int64_t size, int64_t address) { erase(lower_bound(size, address)); }
  void erase(Place place);

  // The smallest block of at least `size`, of these the lowest.
  [[nodiscard]] Place first_of(int64_t size) const { return lower_bound(size, INT64_MIN); }
  [[nodiscard]] Place after(Place place) const;
  // Null behind the last block.
  [[nodiscard]] const FreeBlock* at(Place place) const {
    return place.chunk < chunks_.size() ? &chunks_[place.chunk][place.slot] : nullptr;
  }
  [[nodiscard]] bool empty() const { return chunks_.empty(); }

  // All of them in order; what it calls may not change the list.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& chunk : chunks_) {
      for (const FreeBlock& block : chunk) visit(block);
    }
  }

 private:
  static constexpr size_t kChunk = 64;
  [[nodiscard]] Place lower_bound(int64_t size, int64_t address) const;

  std::vector<std::vector<FreeBlock>> chunks_;  // none is empty
  std::vector<FreeBlock> spare_;                // memory of the chunk that emptied last
};

}  // namespace forerun
