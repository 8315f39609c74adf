// ReferenceAllocator: the same allocator as CachingAllocator, written to be read rather than to be fast.
//
// A segment is a list of pieces in order of address, every search looks at all of them, and the figures are counted
// anew after each call. Tests compare the two on random requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "memory/caching_allocator.h"

namespace forerun {

class ReferenceAllocator {
 public:
  explicit ReferenceAllocator(SegmentSource& source, const AllocatorSettings& settings = {})
      : source_(source), settings_(settings) {}

  void keep_segments(int64_t stream) { kept_.push_back(stream); }
  // The address of the block; nothing where memory ran out, and for no bytes at all.
  std::optional<int64_t> allocate(uint64_t bytes, int64_t stream = 0);
  void free(int64_t address);
  void record_stream(int64_t address, int64_t stream);
  void complete(int64_t address);
  void empty_cache();

  [[nodiscard]] const AllocatorFigures& figures() const { return figures_; }

 private:
  enum class State : uint8_t { free, used, waiting, unmapped };
  struct Piece {
    int64_t address = 0;
    int64_t size = 0;
    State state = State::free;
    int64_t requested = 0;
    bool shared = false;
    int64_t free_since = 0;
  };
  struct Segment {
    int64_t stream = 0;
    bool small = false;
    bool expandable = false;
    std::vector<Piece> pieces;
  };
  struct Place {
    size_t segment = 0;
    size_t piece = 0;
  };
  using Places = std::vector<Place>;

  Piece& at(Place place) { return segments_[place.segment].pieces[place.piece]; }
  Place find(int64_t address);
  // The free pieces of a stream and kind, by size and address.
  Places free_pieces(int64_t stream, bool small);
  int64_t room(Place place);
  [[nodiscard]] bool kept(int64_t stream) const { return std::find(kept_.begin(), kept_.end(), stream) != kept_.end(); }

  std::optional<Place> best_fit(int64_t size, int64_t stream);
  std::optional<Place> from_driver(int64_t size, int64_t stream);
  std::optional<Place> expand(int64_t size, int64_t stream);
  bool map(Place place, int64_t bytes);
  void cut(Place place, int64_t size);  // in two, the lower one of this size
  void join(size_t segment);            // neighbours that are both free, or both unmapped
  void set_free(Place place);
  bool release_oversize(int64_t size, int64_t stream);
  void release_unused();
  void unmap_pages(size_t segment);
  void collect_garbage();
  void release(size_t segment);
  void count();

  SegmentSource& source_;
  AllocatorSettings settings_;
  AllocatorFigures figures_;
  std::vector<Segment> segments_;
  std::vector<int64_t> kept_;     // streams whose segments never go back
  int64_t searches_[2] = {0, 0};  // in large and small pools
};

}  // namespace forerun
