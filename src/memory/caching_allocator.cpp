#include "memory/caching_allocator.h"

#include <algorithm>

#include "base/check.h"

namespace forerun {

CachingAllocator::CachingAllocator(SegmentSource& source, const AllocatorSettings& settings)
    : source_(source), settings_(settings) {}

BlockId CachingAllocator::allocate(uint64_t bytes, int64_t stream) {
  if (bytes == 0) return {};
  if (bytes >= static_cast<uint64_t>(kRequestLimit)) {
    ++figures_.out_of_memory;
    return {};
  }
  Request request{.size = block_size(static_cast<int64_t>(bytes), settings_)};
  request.pool = pool_of(request.size, stream);
  uint32_t block = take_free(request);
  if (block == kNone) block = take_new(request);
  if (block == kNone) {
    ++figures_.out_of_memory;
    return {};
  }
  return hand_out(block, request, static_cast<int64_t>(bytes));
}

void CachingAllocator::free(BlockId id) {
  Block& block = blocks_[id.value];
  CHECK(block.allocated, "a block is freed that is not in use");
  block.allocated = false;
  figures_.allocated.add(-block.size);
  if (block.shared) {
    block.waiting = true;
    waiting_.push_back(id.value);
    return;
  }
  make_free(id.value);
}

void CachingAllocator::record_stream(BlockId id, int64_t stream) {
  Block& block = blocks_[id.value];
  if (block.allocated && stream != pools_[block.pool].stream) block.shared = true;
}

void CachingAllocator::complete(BlockId id) {
  Block& block = blocks_[id.value];
  if (!block.waiting) return;
  std::erase(waiting_, id.value);
  block.waiting = false;
  block.shared = false;
  make_free(id.value);
}

void CachingAllocator::empty_cache() { release_unused(); }

void CachingAllocator::reset_peaks() {
  for (Gauge* gauge :
       {&figures_.requested, &figures_.allocated, &figures_.active, &figures_.reserved, &figures_.segments}) {
    gauge->peak = gauge->current;
  }
}

// -- blocks ------------------------------------------------------------------------------------------------------------

uint32_t CachingAllocator::pool_of(int64_t size, int64_t stream) {
  if (last_pool_ == kNone || stream != last_stream_) {
    const auto [found, added] = streams_.try_emplace(stream, static_cast<uint32_t>(pools_.size()));
    if (added) {
      const bool kept = std::find(kept_.begin(), kept_.end(), stream) != kept_.end();
      pools_.push_back({.stream = stream, .small = true, .kept = kept});
      pools_.push_back({.stream = stream, .small = false, .kept = kept});
    }
    last_stream_ = stream;
    last_pool_ = found->second;
  }
  return last_pool_ + (size <= kSmallLimit ? 0 : 1);
}

uint32_t CachingAllocator::new_block(const Block& block) {
  if (spare_.empty()) {
    blocks_.push_back(block);
    return static_cast<uint32_t>(blocks_.size() - 1);
  }
  const uint32_t number = spare_.back();
  spare_.pop_back();
  blocks_[number] = block;
  return number;
}

// Neither in use nor awaited: its memory, or its addresses, may be taken.
bool CachingAllocator::available(uint32_t block) const {
  return block != kNone && !blocks_[block].allocated && !blocks_[block].waiting;
}

void CachingAllocator::insert_free(uint32_t number) {
  Block& block = blocks_[number];
  Pool& pool = pools_[block.pool];
  block.free_since = searches_[pool.small ? 1 : 0];
  pool.free.insert({block.size, block.address, number});
}

void CachingAllocator::erase_free(uint32_t number) {
  const Block& block = blocks_[number];
  pools_[block.pool].free.erase(block.size, block.address);
}

// The best fit among free blocks, taken from their list.
uint32_t CachingAllocator::take_free(const Request& request) {
  Pool& pool = pools_[request.pool];
  if (collects()) ++searches_[pool.small ? 1 : 0];
  FreeBlocks::Place place = pool.free.first_of(request.size);
  const FreeBlock* found = pool.free.at(place);
  if (found == nullptr) return kNone;
  if (settings_.expandable_segments) {  // a block counts with the room that it can grow into
    for (FreeBlocks::Place next = pool.free.after(place); blocks_[found->block].expandable;
         next = pool.free.after(place)) {
      const FreeBlock* other = pool.free.at(next);
      if (other == nullptr || room(other->block) >= room(found->block)) break;
      place = next;
      found = other;
    }
  }
  if (request.size < settings_.max_split_size && found->size >= settings_.max_split_size) return kNone;
  if (request.size >= settings_.max_split_size && found->size >= request.size + settings_.max_non_split_rounding) {
    return kNone;
  }
  const uint32_t block = found->block;
  pool.free.erase(place);
  return block;
}

BlockId CachingAllocator::hand_out(uint32_t number, const Request& request, int64_t bytes) {
  const bool was_split = split(blocks_[number]);
  const bool expandable = blocks_[number].expandable;
  const int64_t rest = blocks_[number].size - request.size;
  const bool small = pools_[request.pool].small;
  const bool splits = small || settings_.expandable_segments
                          ? rest >= kMinBlock
                          : request.size < settings_.max_split_size && rest > kSmallLimit;
  if (splits) insert_free(split_off(number, request.size));
  Block& block = blocks_[number];
  if (!expandable) {
    if (was_split) figures_.inactive_split += -block.size;
    if (!was_split && splits) figures_.inactive_split += rest;
  }
  block.allocated = true;
  block.requested = bytes;
  figures_.allocated.add(block.size);
  figures_.active.add(block.size);
  figures_.requested.add(bytes);
  return BlockId(number);
}

// Cuts a block to its lower `size` bytes; what is above becomes a block of its own.
uint32_t CachingAllocator::split_off(uint32_t number, int64_t size) {
  Block upper = blocks_[number];
  upper.address += size;
  upper.size -= size;
  upper.prev = number;
  upper.allocated = false;
  const uint32_t added = new_block(upper);
  if (upper.next != kNone) blocks_[upper.next].prev = added;
  blocks_[number].next = added;
  blocks_[number].size = size;
  return added;
}

void CachingAllocator::make_free(uint32_t number) {
  Block& block = blocks_[number];
  const int64_t size = block.size;
  figures_.active.add(-size);
  figures_.requested.add(-block.requested);
  int64_t merged = merge(number, block.prev);
  merged += merge(number, block.next);
  insert_free(number);
  if (!block.expandable) figures_.inactive_split += (split(block) ? block.size : 0) - merged;
}

// Lets a block take up a free neighbour; the bytes that it gained.
int64_t CachingAllocator::merge(uint32_t into, uint32_t neighbour) {
  if (!available(neighbour)) return 0;
  Block& block = blocks_[into];
  const Block& other = blocks_[neighbour];
  if (block.mapped != other.mapped) return 0;
  if (other.mapped) {
    erase_free(neighbour);
  } else {
    pools_[other.pool].unmapped.erase(other.address);
  }
  if (block.prev == neighbour) {
    block.address = other.address;
    block.prev = other.prev;
    if (block.prev != kNone) blocks_[block.prev].next = into;
  } else {
    block.next = other.next;
    if (block.next != kNone) blocks_[block.next].prev = into;
  }
  block.size += other.size;
  const int64_t gained = other.size;
  drop(neighbour);
  return gained;
}

}  // namespace forerun
