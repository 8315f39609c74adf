// The part of CachingAllocator that meets the driver: new segments, giving unused ones back, expandable segments.
#include "base/check.h"
#include "memory/caching_allocator.h"

namespace forerun {

// A block from new memory, in the order in which PyTorch tries.
uint32_t CachingAllocator::take_new(const Request& request) {
  if (collects()) collect_garbage();
  uint32_t block = new_segment(request);
  if (block == kNone && release_oversize(request)) block = new_segment(request);
  if (block != kNone) return block;
  release_unused();
  ++figures_.retries;
  return new_segment(request);
}

uint32_t CachingAllocator::new_segment(const Request& request) {
  const int64_t bytes = segment_size(request.size);
  if (settings_.memory_limit && figures_.reserved.current + bytes > *settings_.memory_limit) return kNone;
  if (settings_.expandable_segments) return expand(request);
  const std::optional<int64_t> address = source_.allocate(bytes);
  if (!address) return kNone;
  figures_.reserved.add(bytes);
  figures_.segments.add(1);
  return new_block({.address = *address, .size = bytes, .pool = request.pool});
}

// Gives back the segment that a free block fills.
void CachingAllocator::release_segment(uint32_t number) {
  const Block& block = blocks_[number];
  erase_free(number);
  source_.release(block.address, block.size);
  figures_.reserved.add(-block.size);
  figures_.segments.add(-1);
  drop(number);
}

// With max_split_size blocks above it are kept whole: one that is large enough goes back, or the largest until enough
// is free. Whether that was enough.
bool CachingAllocator::release_oversize(const Request& request) {
  if (settings_.max_split_size == kUnlimited || pools_[request.pool].kept) return false;
  const FreeBlocks& free = pools_[request.pool].free;
  const int64_t wanted = std::max(request.size, settings_.max_split_size);
  if (const FreeBlock* enough = free.at(free.first_of(wanted)); enough != nullptr) {
    if (blocks_[enough->block].expandable) return true;
    release_segment(enough->block);
    return true;
  }
  std::vector<FreeBlock> oversize;
  free.for_each([&](const FreeBlock& block) {
    if (block.size >= settings_.max_split_size && !blocks_[block.block].expandable) oversize.push_back(block);
  });
  int64_t released = 0;
  for (auto block = oversize.rbegin(); block != oversize.rend() && released < wanted; ++block) {
    released += block->size;
    release_segment(block->block);
  }
  return released >= wanted;
}

// Waits for all streams, then gives back every segment, or page of an expandable one, that is not in use at all.
void CachingAllocator::release_unused() {
  while (!waiting_.empty()) complete(BlockId(waiting_.back()));
  std::vector<uint32_t> whole;
  std::vector<uint32_t> expandable;
  for (const Pool& pool : pools_) {
    if (pool.kept) continue;
    pool.free.for_each([&](const FreeBlock& free) {
      const Block& block = blocks_[free.block];
      if (block.expandable) {
        expandable.push_back(free.block);
      } else if (!split(block)) {
        whole.push_back(free.block);
      }
    });
  }
  for (const uint32_t block : whole) release_segment(block);
  for (const uint32_t block : expandable) unmap(block);
}

// Gives back whole segments of the large pools that have been free for longer than the average, until the reserved
// memory is below the threshold.
void CachingAllocator::collect_garbage() {
  const auto threshold =
      static_cast<int64_t>(settings_.garbage_collection_threshold * static_cast<double>(*settings_.memory_limit));
  const int64_t excess = figures_.reserved.current - threshold;
  if (excess <= 0) return;
  std::vector<uint32_t> candidates;
  int64_t total_age = 0;
  const auto age = [this](uint32_t block) { return searches_[0] - blocks_[block].free_since; };
  for (const Pool& pool : pools_) {
    if (pool.small || pool.kept) continue;
    pool.free.for_each([&](const FreeBlock& free) {
      if (split(blocks_[free.block]) || blocks_[free.block].expandable) return;
      candidates.push_back(free.block);
      total_age += age(free.block);
    });
  }
  for (int64_t released = 0; released < excess && !candidates.empty();) {
    const double old = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    std::vector<uint32_t> kept;
    for (const uint32_t block : candidates) {
      if (static_cast<double>(age(block)) < old) {
        kept.push_back(block);
        continue;
      }
      released += blocks_[block].size;
      total_age -= age(block);
      release_segment(block);
    }
    if (kept.size() == candidates.size()) return;
    candidates = std::move(kept);
  }
}

// -- expandable segments -------------------------------------------------------------------------------------------

// What a free block would hold if the unmapped range behind it were mapped.
int64_t CachingAllocator::room(uint32_t number) const {
  const Block& block = blocks_[number];
  const bool grows = block.next != kNone && !blocks_[block.next].mapped;
  return block.size + (grows ? blocks_[block.next].size : 0);
}

// Maps as many pages behind a free block as the request needs; nothing where memory is spent.
uint32_t CachingAllocator::expand(const Request& request) {
  uint32_t block = find_expandable(request);
  if (!blocks_[block].mapped && !map(block, std::min(blocks_[block].size, request.size))) return kNone;
  while (blocks_[block].size < request.size) {
    const uint32_t behind = blocks_[block].next;
    const int64_t missing = request.size - blocks_[block].size;
    if (!map(behind, std::min(missing, blocks_[behind].size))) return kNone;
    block = behind;
  }
  erase_free(block);
  return block;
}

// The lowest unmapped range that, with the free blocks around it, has addresses enough; a new segment otherwise.
uint32_t CachingAllocator::find_expandable(const Request& request) {
  Pool& pool = pools_[request.pool];
  for (const auto& [address, unmapped] : pool.unmapped) {
    const uint32_t before = blocks_[unmapped].prev;
    const uint32_t first = available(before) ? before : unmapped;
    int64_t addresses = 0;
    for (uint32_t block = first; addresses < request.size && available(block); block = blocks_[block].next) {
      addresses += blocks_[block].size;
    }
    if (addresses >= request.size) return first;
  }
  const int64_t page = pool.small ? kSmallSegment : kLargeSegment;
  const int64_t size = round_up(source_.capacity() + source_.capacity() / 8, page);
  const uint32_t added = new_block(
      {.address = source_.reserve(size), .size = size, .pool = request.pool, .expandable = true, .mapped = false});
  pool.unmapped.emplace(blocks_[added].address, added);
  return added;
}

// Maps the pages of the first `bytes` of an unmapped range, which then is a free block with its free neighbours.
bool CachingAllocator::map(uint32_t number, int64_t bytes) {
  const int64_t size = round_up(bytes, page_of(number));
  if (!source_.map(blocks_[number].address, size)) return false;
  Pool& pool = pools_[blocks_[number].pool];
  pool.unmapped.erase(blocks_[number].address);
  if (size < blocks_[number].size) {
    const uint32_t rest = split_off(number, size);
    pool.unmapped.emplace(blocks_[rest].address, rest);
  }
  Block& block = blocks_[number];
  block.mapped = true;
  merge(number, block.prev);
  merge(number, block.next);
  insert_free(number);
  figures_.reserved.add(size);
  return true;
}

// Gives back the pages that lie wholly in a free block; what of it lies before and behind stays free.
void CachingAllocator::unmap(uint32_t number) {
  const int64_t page = page_of(number);
  const int64_t begin = round_up(blocks_[number].address, page);
  const int64_t end = (blocks_[number].address + blocks_[number].size) / page * page;
  if (begin >= end) return;
  erase_free(number);
  if (end < blocks_[number].address + blocks_[number].size) {
    insert_free(split_off(number, end - blocks_[number].address));
  }
  uint32_t middle = number;
  if (begin > blocks_[number].address) {
    middle = split_off(number, begin - blocks_[number].address);
    insert_free(number);
  }
  Block& block = blocks_[middle];
  block.mapped = false;
  source_.unmap(begin, end - begin);
  figures_.reserved.add(begin - end);
  merge(middle, block.prev);
  merge(middle, block.next);
  if (!split(block)) {  // nothing of the segment is mapped any more
    drop(middle);
    return;
  }
  pools_[block.pool].unmapped.emplace(block.address, middle);
}

}  // namespace forerun
