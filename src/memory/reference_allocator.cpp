#include "memory/reference_allocator.h"

#include <algorithm>

#include "base/check.h"

namespace forerun {

std::optional<int64_t> ReferenceAllocator::allocate(uint64_t bytes, int64_t stream) {
  if (bytes == 0) return std::nullopt;
  std::optional<Place> place;
  int64_t size = 0;
  if (bytes < static_cast<uint64_t>(kRequestLimit)) {
    size = block_size(static_cast<int64_t>(bytes), settings_);
    place = best_fit(size, stream);
    if (!place) place = from_driver(size, stream);
  }
  if (!place) {
    ++figures_.out_of_memory;
    count();
    return std::nullopt;
  }
  const Segment& segment = segments_[place->segment];
  const int64_t rest = at(*place).size - size;
  const bool splits = segment.small || settings_.expandable_segments
                          ? rest >= kMinBlock
                          : size < settings_.max_split_size && rest > kSmallLimit;
  if (splits) cut(*place, size);
  at(*place).state = State::used;
  at(*place).requested = static_cast<int64_t>(bytes);
  count();
  return at(*place).address;
}

void ReferenceAllocator::free(int64_t address) {
  const Place place = find(address);
  CHECK(at(place).state == State::used, "a block is freed that is not in use");
  if (at(place).shared) {
    at(place).state = State::waiting;
  } else {
    set_free(place);
  }
  count();
}

void ReferenceAllocator::record_stream(int64_t address, int64_t stream) {
  const Place place = find(address);
  if (at(place).state == State::used && stream != segments_[place.segment].stream) at(place).shared = true;
}

void ReferenceAllocator::complete(int64_t address) {
  const Place place = find(address);
  if (at(place).state == State::waiting) set_free(place);
  count();
}

void ReferenceAllocator::empty_cache() { release_unused(); }

ReferenceAllocator::Place ReferenceAllocator::find(int64_t address) {
  for (size_t s = 0; s < segments_.size(); ++s) {
    for (size_t p = 0; p < segments_[s].pieces.size(); ++p) {
      if (at({s, p}).address == address) return {s, p};
    }
  }
  CHECK(false, "no block has this address");
  return {};
}

ReferenceAllocator::Places ReferenceAllocator::free_pieces(int64_t stream, bool small) {
  Places found;
  for (size_t s = 0; s < segments_.size(); ++s) {
    if (segments_[s].stream != stream || segments_[s].small != small) continue;
    for (size_t p = 0; p < segments_[s].pieces.size(); ++p) {
      if (at({s, p}).state == State::free) found.push_back({s, p});
    }
  }
  std::sort(found.begin(), found.end(), [this](Place a, Place b) {
    return std::pair(at(a).size, at(a).address) < std::pair(at(b).size, at(b).address);
  });
  return found;
}

int64_t ReferenceAllocator::room(Place place) {
  const std::vector<Piece>& pieces = segments_[place.segment].pieces;
  int64_t size = at(place).size;
  if (place.piece + 1 < pieces.size() && pieces[place.piece + 1].state == State::unmapped) {
    size += pieces[place.piece + 1].size;
  }
  return size;
}

std::optional<ReferenceAllocator::Place> ReferenceAllocator::best_fit(int64_t size, int64_t stream) {
  const bool small = size <= kSmallLimit;
  ++searches_[small ? 1 : 0];
  Places fitting = free_pieces(stream, small);
  std::erase_if(fitting, [&](Place place) { return at(place).size < size; });
  if (fitting.empty()) return std::nullopt;
  size_t chosen = 0;
  if (settings_.expandable_segments) {
    while (chosen + 1 < fitting.size() && room(fitting[chosen + 1]) < room(fitting[chosen])) ++chosen;
  }
  const int64_t found = at(fitting[chosen]).size;
  const bool oversize_request = size >= settings_.max_split_size;
  if (!oversize_request && found >= settings_.max_split_size) return std::nullopt;
  if (oversize_request && found >= size + settings_.max_non_split_rounding) return std::nullopt;
  return fitting[chosen];
}

// New memory, after giving back more and more of what is unused.
std::optional<ReferenceAllocator::Place> ReferenceAllocator::from_driver(int64_t size, int64_t stream) {
  const auto attempt = [&]() -> std::optional<Place> {
    const int64_t bytes = segment_size(size);
    if (settings_.memory_limit && figures_.reserved.current + bytes > *settings_.memory_limit) return std::nullopt;
    if (settings_.expandable_segments) return expand(size, stream);
    const std::optional<int64_t> address = source_.allocate(bytes);
    if (!address) return std::nullopt;
    segments_.push_back({.stream = stream, .small = size <= kSmallLimit, .pieces = {{*address, bytes}}});
    return Place{segments_.size() - 1, 0};
  };
  if (settings_.memory_limit && settings_.garbage_collection_threshold > 0) collect_garbage();
  std::optional<Place> place = attempt();
  if (!place && release_oversize(size, stream)) place = attempt();
  if (place) return place;
  release_unused();
  ++figures_.retries;
  return attempt();
}

// The lowest unmapped range that has addresses enough with the free piece before it and what is free behind it; a new
// range otherwise. Its pages are mapped as far as the request reaches.
std::optional<ReferenceAllocator::Place> ReferenceAllocator::expand(int64_t size, int64_t stream) {
  const bool small = size <= kSmallLimit;
  const auto usable = [](const Piece& piece) { return piece.state == State::free || piece.state == State::unmapped; };
  std::optional<Place> first;
  for (size_t s = 0; s < segments_.size(); ++s) {
    const std::vector<Piece>& pieces = segments_[s].pieces;
    if (segments_[s].stream != stream || segments_[s].small != small) continue;
    for (size_t p = 0; p < pieces.size(); ++p) {
      if (pieces[p].state != State::unmapped) continue;
      const size_t from = p > 0 && usable(pieces[p - 1]) ? p - 1 : p;
      int64_t addresses = 0;
      for (size_t i = from; i < pieces.size() && usable(pieces[i]); ++i) addresses += pieces[i].size;
      if (addresses < size) continue;
      if (!first || pieces[from].address < at(*first).address) first = Place{s, from};
    }
  }
  if (!first) {
    const int64_t bytes = round_up(source_.capacity() + source_.capacity() / 8, small ? kSmallSegment : kLargeSegment);
    segments_.push_back({stream, small, true, {{source_.reserve(bytes), bytes, State::unmapped}}});
    first = Place{segments_.size() - 1, 0};
  }
  const int64_t address = at(*first).address;
  while (true) {
    const Place place = find(address);
    if (at(place).state == State::free && at(place).size >= size) return place;
    const bool mapped = at(place).state == State::free;
    const Place next = mapped ? Place{place.segment, place.piece + 1} : place;
    const int64_t missing = mapped ? size - at(place).size : size;
    if (!map(next, std::min(missing, at(next).size))) return std::nullopt;
  }
}

bool ReferenceAllocator::map(Place place, int64_t bytes) {
  const int64_t pages = round_up(bytes, segments_[place.segment].small ? kSmallSegment : kLargeSegment);
  if (!source_.map(at(place).address, pages)) return false;
  if (pages < at(place).size) cut(place, pages);
  at(place).state = State::free;
  join(place.segment);
  count();
  return true;
}

void ReferenceAllocator::cut(Place place, int64_t size) {
  std::vector<Piece>& pieces = segments_[place.segment].pieces;
  Piece upper = at(place);
  upper.address += size;
  upper.size -= size;
  upper.free_since = searches_[segments_[place.segment].small ? 1 : 0];
  at(place).size = size;
  pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(place.piece) + 1, upper);
}

void ReferenceAllocator::join(size_t segment) {
  std::vector<Piece>& pieces = segments_[segment].pieces;
  for (size_t i = 0; i + 1 < pieces.size();) {
    const State state = pieces[i].state;
    if (state != pieces[i + 1].state || (state != State::free && state != State::unmapped)) {
      ++i;
      continue;
    }
    pieces[i].size += pieces[i + 1].size;
    pieces[i].free_since = searches_[segments_[segment].small ? 1 : 0];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

void ReferenceAllocator::set_free(Place place) {
  Piece& piece = at(place);
  piece = {piece.address, piece.size, State::free};
  piece.free_since = searches_[segments_[place.segment].small ? 1 : 0];
  join(place.segment);
}

bool ReferenceAllocator::release_oversize(int64_t size, int64_t stream) {
  if (settings_.max_split_size == kUnlimited || kept(stream)) return false;
  const int64_t wanted = std::max(size, settings_.max_split_size);
  int64_t released = 0;
  while (released < wanted) {
    Places free = free_pieces(stream, size <= kSmallLimit);
    std::erase_if(free, [&](Place place) { return at(place).size < settings_.max_split_size; });
    const auto enough = std::find_if(free.begin(), free.end(), [&](Place place) { return at(place).size >= wanted; });
    if (enough != free.end()) {
      if (!segments_[enough->segment].expandable) release(enough->segment);
      return true;
    }
    std::erase_if(free, [&](Place place) { return segments_[place.segment].expandable; });
    if (free.empty()) return false;
    released += at(free.back()).size;
    release(free.back().segment);
  }
  return true;
}

void ReferenceAllocator::release_unused() {
  for (size_t s = segments_.size(); s-- > 0;) {
    for (Piece& piece : segments_[s].pieces) {
      if (piece.state != State::waiting) continue;
      piece = {piece.address, piece.size, State::free};
      piece.free_since = searches_[segments_[s].small ? 1 : 0];
    }
    join(s);
    if (kept(segments_[s].stream)) continue;
    if (segments_[s].expandable) {
      unmap_pages(s);
    } else if (segments_[s].pieces.size() == 1 && segments_[s].pieces[0].state == State::free) {
      release(s);
    }
  }
  count();
}

// Unmaps the pages that lie wholly in a free piece; a segment without any is dropped.
void ReferenceAllocator::unmap_pages(size_t s) {
  const int64_t page = segments_[s].small ? kSmallSegment : kLargeSegment;
  for (size_t p = 0; p < segments_[s].pieces.size(); ++p) {
    if (at({s, p}).state != State::free) continue;
    const int64_t end = at({s, p}).address + at({s, p}).size;
    const int64_t first = round_up(at({s, p}).address, page);
    const int64_t last = end / page * page;
    if (first >= last) continue;
    source_.unmap(first, last - first);
    if (last < end) cut({s, p}, last - at({s, p}).address);
    if (first > at({s, p}).address) {
      cut({s, p}, first - at({s, p}).address);
      ++p;  // what is unmapped lies behind the cut
    }
    at({s, p}).state = State::unmapped;
  }
  join(s);
  if (segments_[s].pieces.size() == 1 && segments_[s].pieces[0].state == State::unmapped) {
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(s));
  }
}

void ReferenceAllocator::collect_garbage() {
  const auto threshold =
      static_cast<int64_t>(settings_.garbage_collection_threshold * static_cast<double>(*settings_.memory_limit));
  const int64_t excess = figures_.reserved.current - threshold;
  for (int64_t released = 0; released < excess;) {
    std::vector<size_t> candidates;
    double total_age = 0;
    const auto age = [this](size_t s) { return static_cast<double>(searches_[0] - segments_[s].pieces[0].free_since); };
    for (size_t s = 0; s < segments_.size(); ++s) {
      const Segment& segment = segments_[s];
      if (kept(segment.stream) || segment.small || segment.expandable || segment.pieces.size() > 1) continue;
      if (segment.pieces[0].state != State::free) continue;
      candidates.push_back(s);
      total_age += age(s);
    }
    if (candidates.empty()) return;
    const double average = total_age / static_cast<double>(candidates.size());
    for (auto s = candidates.rbegin(); s != candidates.rend(); ++s) {
      if (age(*s) < average) continue;
      released += segments_[*s].pieces[0].size;
      release(*s);
    }
  }
  count();
}

void ReferenceAllocator::release(size_t segment) {
  const Piece& piece = segments_[segment].pieces[0];
  source_.release(piece.address, piece.size);
  segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(segment));
  count();
}

void ReferenceAllocator::count() {
  int64_t requested = 0, allocated = 0, active = 0, reserved = 0, segments = 0, inactive = 0;
  for (const Segment& segment : segments_) {
    if (!segment.expandable) ++segments;
    for (const Piece& piece : segment.pieces) {
      if (piece.state == State::unmapped) continue;
      reserved += piece.size;
      if (piece.state == State::used) allocated += piece.size;
      if (piece.state == State::free) {
        if (!segment.expandable && segment.pieces.size() > 1) inactive += piece.size;
        continue;
      }
      active += piece.size;
      requested += piece.requested;
    }
  }
  const auto set = [](Gauge& gauge, int64_t value) { gauge.add(value - gauge.current); };
  set(figures_.requested, requested);
  set(figures_.allocated, allocated);
  set(figures_.active, active);
  set(figures_.reserved, reserved);
  set(figures_.segments, segments);
  figures_.inactive_split = inactive;
}

}  // namespace forerun
