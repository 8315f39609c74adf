#include "ingest/capture/allocator_trace.h"

#include <fmt/format.h>

#include <unordered_map>

namespace forerun {
namespace {

class Replay {
 public:
  explicit Replay(bool earlier_blocks) : earlier_blocks_(earlier_blocks) {}

  // What is wrong with the event; empty if nothing is.
  std::string take(const AllocatorEvent& event) {
    switch (event.action) {
      case 'a': return begin(blocks_, event, "block");
      case 'r': return request(event);
      case 'f': return end(blocks_, event, "block");
      case 'S': return begin(segments_, event, "segment");
      case 'X': return end(segments_, event, "segment");
      default: return "";
    }
  }

 private:
  struct Piece {
    int64_t size = 0;
    bool live = false;
    bool requested = false;  // its free was asked for
  };
  using Pieces = std::unordered_map<int64_t, Piece>;

  static std::string begin(Pieces& pieces, const AllocatorEvent& event, const char* kind) {
    Piece& piece = pieces[event.address];
    if (piece.live) return fmt::format("allocates {} {}, which is live", kind, event.address);
    piece = {event.size, true, false};
    return "";
  }

  std::string missing(const Pieces& pieces, const AllocatorEvent& event, const char* kind) const {
    const auto found = pieces.find(event.address);
    if (found == pieces.end()) {
      return earlier_blocks_ ? "" : fmt::format("frees {} {}, which was never allocated", kind, event.address);
    }
    if (!found->second.live) return fmt::format("frees {} {} a second time", kind, event.address);
    if (found->second.size != event.size) {
      return fmt::format("frees {} bytes of {} {}, which has {}", event.size, kind, event.address, found->second.size);
    }
    return "";
  }

  std::string request(const AllocatorEvent& event) {
    std::string wrong = missing(blocks_, event, "block");
    if (!wrong.empty() || !blocks_.contains(event.address)) return wrong;
    Piece& piece = blocks_[event.address];
    if (piece.requested) return fmt::format("asks to free block {} a second time", event.address);
    piece.requested = true;
    return "";
  }

  std::string end(Pieces& pieces, const AllocatorEvent& event, const char* kind) const {
    std::string wrong = missing(pieces, event, kind);
    if (wrong.empty() && pieces.contains(event.address)) pieces[event.address].live = false;
    return wrong;
  }

  bool earlier_blocks_;
  Pieces blocks_;
  Pieces segments_;
};

}  // namespace

std::optional<int64_t> KnownSizes::size_of(const AllocatorEvent& event) const {
  if (event.action != 'r' && event.action != 'f' && event.action != 'X') return std::nullopt;
  const auto& sizes = event.action == 'X' ? segments_ : blocks_;
  const auto known = sizes.find(event.address);
  return known == sizes.end() ? std::nullopt : std::optional(known->second);
}

void KnownSizes::take(const AllocatorEvent& event) {
  if (event.action == 'a') blocks_[event.address] = event.size;
  if (event.action == 'S') segments_[event.address] = event.size;
}

Status check(const AllocatorTrace& trace, bool earlier_blocks) {
  Replay replay(earlier_blocks);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    if (std::string wrong = replay.take(trace.events[i]); !wrong.empty()) {
      return Error{fmt::format("event {} of alloc_trace {}", i, wrong), "", ""};
    }
  }
  uint64_t before = 0;
  for (const AllocatorTrace::Mark& mark : trace.marks) {
    if (mark.event < before || mark.event > trace.events.size()) {
      return Error{fmt::format("mark {} of alloc_trace stands at event {}, behind {} and within {}", mark.name,
                               mark.event, before, trace.events.size()),
                   "", ""};
    }
    before = mark.event;
  }
  return {};
}

}  // namespace forerun
