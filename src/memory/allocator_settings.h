// AllocatorSettings: what PYTORCH_CUDA_ALLOC_CONF tells PyTorch's CUDA caching allocator, and the sizes it works in.
//
// Modelled after PyTorch 2.11: sizes in steps of 512 bytes; up to 1 MiB from 2 MiB segments, below 10 MiB from 20 MiB
// segments, larger ones in segments of their own in steps of 2 MiB. Left out: release_lock_on_cudamalloc, pinned
// memory and the other settings that change no size.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "memory/rounding.h"

namespace forerun {

inline constexpr int64_t kMebibyte = int64_t{1} << 20;
inline constexpr int64_t kMinBlock = 512;
inline constexpr int64_t kSmallLimit = kMebibyte;         // up to here from the small pool
inline constexpr int64_t kSmallSegment = 2 * kMebibyte;   // of the small pool; also the page of its expandable segments
inline constexpr int64_t kLargeSegment = 20 * kMebibyte;  // of the large pool, below kOwnSegment; also its page
inline constexpr int64_t kOwnSegment = 10 * kMebibyte;    // from here on a segment as large as the request
inline constexpr int64_t kSegmentStep = 2 * kMebibyte;
inline constexpr int64_t kRequestLimit = int64_t{1} << 60;  // PyTorch refuses larger requests at once
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

struct AllocatorSettings {
  bool expandable_segments = false;
  int64_t max_split_size = kUnlimited;                 // larger blocks are never split
  int64_t max_non_split_rounding = kLargeSegment;      // how much larger an unsplit block may be than its request
  std::array<int64_t, 16> roundup_power2_divisions{};  // by power of two from 1 MiB on; 0: round to 512 bytes
  double garbage_collection_threshold = 0;             // share of the memory limit; 0: off. Only acts with a limit
  std::optional<int64_t> memory_limit;                 // set_per_process_memory_fraction, in bytes
};

// "expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:[256:2,>:4]". An unknown name or a value out
// of range is an Error that lists what there is.
Result<AllocatorSettings> parse_allocator_settings(std::string_view text);

// The size of the block that a request of 1 to kRequestLimit bytes asks for.
int64_t block_size(int64_t bytes, const AllocatorSettings& settings);

// The size of a new segment for a block of that size.
constexpr int64_t segment_size(int64_t block) {
  if (block <= kSmallLimit) return kSmallSegment;
  return block < kOwnSegment ? kLargeSegment : round_up(block, kSegmentStep);
}

}  // namespace forerun
