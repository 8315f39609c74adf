#include "memory/free_blocks.h"

#include <algorithm>

#include "base/check.h"

namespace forerun {
namespace {

bool before(const FreeBlock& block, int64_t size, int64_t address) {
  return block.size < size || (block.size == size && block.address < address);
}

}  // namespace

FreeBlocks::Place FreeBlocks::lower_bound(int64_t size, int64_t address) const {
  size_t chunk = 0;
  if (chunks_.size() > 1) {
    const auto found = std::partition_point(chunks_.begin(), chunks_.end(), [&](const std::vector<FreeBlock>& blocks) {
      return before(blocks.back(), size, address);
    });
    chunk = static_cast<size_t>(found - chunks_.begin());
  }
  if (chunk >= chunks_.size()) return {chunks_.size(), 0};
  const std::vector<FreeBlock>& blocks = chunks_[chunk];
  // Halves the range without branching on the comparison, which is hard to foresee.
  const FreeBlock* base = blocks.data();
  size_t count = blocks.size();
  while (count > 1) {
    const size_t half = count / 2;
    base = before(base[half - 1], size, address) ? base + half : base;
    count -= half;
  }
  const auto slot = static_cast<size_t>(base - blocks.data()) + (before(*base, size, address) ? 1 : 0);
  return slot < blocks.size() ? Place{chunk, slot} : Place{chunk + 1, 0};
}

FreeBlocks::Place FreeBlocks::after(Place place) const {
  return place.slot + 1 < chunks_[place.chunk].size() ? Place{place.chunk, place.slot + 1} : Place{place.chunk + 1, 0};
}

void FreeBlocks::insert(const FreeBlock& block) {
  if (chunks_.empty()) {
    spare_.reserve(kChunk);
    spare_.push_back(block);
    chunks_.push_back(std::move(spare_));
    spare_ = {};
    return;
  }
  Place place = lower_bound(block.size, block.address);
  if (place.slot == 0 && place.chunk > 0) {  // may as well end the chunk before
    --place.chunk;
    place.slot = chunks_[place.chunk].size();
  }
  if (chunks_[place.chunk].size() == kChunk) {
    std::vector<FreeBlock> upper;
    upper.reserve(kChunk);
    std::vector<FreeBlock>& lower = chunks_[place.chunk];
    upper.assign(lower.begin() + kChunk / 2, lower.end());
    lower.resize(kChunk / 2);
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(place.chunk) + 1, std::move(upper));
    if (place.slot > kChunk / 2) place = {place.chunk + 1, place.slot - kChunk / 2};
  }
  std::vector<FreeBlock>& chunk = chunks_[place.chunk];
  chunk.insert(chunk.begin() + static_cast<std::ptrdiff_t>(place.slot), block);
}

void FreeBlocks::erase(Place place) {
  CHECK(place.chunk < chunks_.size(), "a free block is not in the list");
  std::vector<FreeBlock>& chunk = chunks_[place.chunk];
  chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(place.slot));
  if (!chunk.empty()) return;
  spare_ = std::move(chunk);
  chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(place.chunk));
}

}  // namespace forerun
