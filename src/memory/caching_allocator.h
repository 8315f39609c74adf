// CachingAllocator: PyTorch's CUDA caching allocator, simulated to the byte.
//
// Modelled after PyTorch 2.11. A request is rounded (allocator_settings.h) and takes the smallest free block of its pool
// and stream that holds it, the lowest of equals; what is left over is split off and stays free, a freed block merges
// with free neighbours of its segment. Without such a block the driver gives a new segment; where it cannot, unused
// segments go back and it is asked once more. A block that other streams use too (record_stream) is free only once they
// are done with it. Expandable segments grow page by page in a reserved range of addresses instead.
//
// The private pool of CUDA graphs is a stream of its own whose segments stay (`keep_segments`). Left out: memory callbacks, pinned host
// memory. `reference_allocator.h` is the same, slower and simpler, and a property test holds the two together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/id.h"
#include "memory/allocator_settings.h"
#include "memory/device_memory.h"
#include "memory/free_blocks.h"

namespace forerun {

using BlockId = Id<struct BlockTag>;

struct Gauge {
  int64_t current = 0;
  int64_t peak = 0;
  void add(int64_t amount) {
    current += amount;
    peak = std::max(peak, current);
  }
  bool operator==(const Gauge&) const = default;
};

// As torch.cuda.memory_stats() gives them, over both pools.
struct AllocatorFigures {
  Gauge requested;             // bytes asked for
  Gauge allocated;             // blocks in use
  Gauge active;                // the same, and those freed that other streams still use
  Gauge reserved;              // segments
  Gauge segments;              // how many; expandable ones do not count
  int64_t inactive_split = 0;  // bytes free in segments that are partly in use
  int64_t retries = 0;         // allocations tried again after unused segments went back
  int64_t out_of_memory = 0;
  bool operator==(const AllocatorFigures&) const = default;
};

class CachingAllocator {
 public:
  // `source` must outlive the allocator.
  explicit CachingAllocator(SegmentSource& source, const AllocatorSettings& settings = {});

  // No segment of that stream goes back: graphs that live hold the addresses of their private pool, and PyTorch releases it only once
  // they are gone. To be said before the stream's first allocation.
  void keep_segments(int64_t stream) { kept_.push_back(stream); }

  // Invalid where memory ran out, and for no bytes at all.
  BlockId allocate(uint64_t bytes, int64_t stream = 0);
  // Where another stream uses the block too, it stays active until `complete`.
  void free(BlockId block);
  void record_stream(BlockId block, int64_t stream);
  // The other streams are done with a block that was freed. Nothing happens where it is not waiting for that.
  void complete(BlockId block);
  // torch.cuda.empty_cache(): waits for all streams and gives unused segments back.
  void empty_cache();
  // torch.cuda.reset_peak_memory_stats(): peaks begin anew at what there is.
  void reset_peaks();

  [[nodiscard]] const AllocatorFigures& figures() const { return figures_; }
  [[nodiscard]] int64_t address(BlockId block) const { return blocks_[block.value].address; }
  [[nodiscard]] int64_t size(BlockId block) const { return blocks_[block.value].size; }

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  struct Block {
    int64_t address = 0;
    int64_t size = 0;
    int64_t requested = 0;
    int64_t free_since = 0;  // searches made in the pools of its kind when it became free
    uint32_t prev = kNone;   // neighbours in the segment
    uint32_t next = kNone;
    uint32_t pool = 0;
    bool allocated = false;
    bool shared = false;   // other streams use it
    bool waiting = false;  // freed, while other streams still use it
    bool expandable = false;
    bool mapped = true;  // false: address space without memory
  };

  // The blocks of one stream and kind.
  struct Pool {
    int64_t stream = 0;
    bool small = false;
    bool kept = false;  // segments never go back
    FreeBlocks free;
    std::map<int64_t, uint32_t> unmapped;  // by address
  };

  struct Request {
    int64_t size = 0;
    uint32_t pool = 0;
  };

  uint32_t pool_of(int64_t size, int64_t stream);
  uint32_t new_block(const Block& block);
  void drop(uint32_t block) { spare_.push_back(block); }
  [[nodiscard]] bool available(uint32_t block) const;
  [[nodiscard]] bool split(const Block& block) const { return block.prev != kNone || block.next != kNone; }

  void insert_free(uint32_t block);
  void erase_free(uint32_t block);
  uint32_t take_free(const Request& request);
  BlockId hand_out(uint32_t block, const Request& request, int64_t bytes);
  uint32_t split_off(uint32_t block, int64_t size);
  void make_free(uint32_t block);
  int64_t merge(uint32_t into, uint32_t neighbour);

  uint32_t take_new(const Request& request);
  uint32_t new_segment(const Request& request);
  void release_segment(uint32_t block);
  bool release_oversize(const Request& request);
  void release_unused();
  void collect_garbage();

  uint32_t expand(const Request& request);
  uint32_t find_expandable(const Request& request);
  bool map(uint32_t block, int64_t bytes);
  void unmap(uint32_t block);
  [[nodiscard]] int64_t page_of(uint32_t block) const {
    return pools_[blocks_[block].pool].small ? kSmallSegment : kLargeSegment;
  }
  [[nodiscard]] int64_t room(uint32_t block) const;

  [[nodiscard]] bool collects() const { return settings_.memory_limit && settings_.garbage_collection_threshold > 0; }

  SegmentSource& source_;
  AllocatorSettings settings_;
  AllocatorFigures figures_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> spare_;  // numbers of blocks that are no more
  std::vector<Pool> pools_;      // two a stream: small, large
  std::unordered_map<int64_t, uint32_t> streams_;
  std::vector<int64_t> kept_;  // streams whose segments never go back
  int64_t last_stream_ = 0;
  uint32_t last_pool_ = kNone;
  std::vector<uint32_t> waiting_;
  int64_t searches_[2] = {0, 0};  // in large and small pools, counted where garbage is collected
};

}  // namespace forerun
