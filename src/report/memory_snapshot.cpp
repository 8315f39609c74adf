// The log as a pickle of torch.cuda.memory._snapshot(), protocol 2, with the few opcodes that both Python and the
// memory_viz page read:
//   {"segments": [{"device": 0, "address": ..., "total_size": ..., "stream": 0, "segment_type": "large", ...,
//                  "blocks": [{"address": ..., "size": ..., "requested_size": ..., "state": "active_allocated",
//                              "frames": [{"name": ..., "filename": ..., "line": 7}]}]}],
//    "device_traces": [[{"action": "alloc", "addr": ..., "size": ..., "stream": 0, "time_us": 0, "frames": [...]}]]}
// Segments follow from where reserved memory grows: a new segment begins at the block that it was taken for, and one that
// can expand grows at its end. Left out: segments given back. Time is the number of the event.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "graph/op_modules.h"
#include "report/memory_timeline.h"

namespace forerun {
namespace {

class Pickle {
 public:
  Pickle() { out_ = std::string("\x80\x02", 2); }
  void begin_dict() { out_ += "}("; }
  void end_dict() { out_ += 'u'; }
  void begin_list() { out_ += "]("; }
  void end_list() { out_ += 'e'; }
  // Readers take a list's entries at one go; ends a part and begins the next.
  void next_part() { out_ += "e("; }

  void key(const char* name) { text(name); }
  void text(const std::string& value) {
    const auto known = memo_.find(value);
    if (known != memo_.end()) {
      out_ += 'j';
      little(known->second, 4);
      return;
    }
    out_ += 'X';
    little(value.size(), 4);
    out_ += value;
    put(memo_[value] = next_++);
  }
  void number(int64_t value) {
    if (value >= INT32_MIN && value <= INT32_MAX) {
      out_ += 'J';
      little(static_cast<uint64_t>(value), 4);
      return;
    }
    out_ += "\x8a\x08";
    little(static_cast<uint64_t>(value), 8);
  }
  void flag(bool value) { out_ += value ? '\x88' : '\x89'; }
  // What was built last can be had again by the number this gives.
  uint64_t remember() {
    put(next_);
    return next_++;
  }
  void recall(uint64_t number) {
    out_ += 'j';
    little(number, 4);
  }
  std::string finish() { return out_ + "."; }

 private:
  void little(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>((value >> (8 * i)) & 0xff);
  }
  void put(uint64_t number) {
    out_ += 'r';
    little(number, 4);
  }

  std::string out_;
  std::unordered_map<std::string, uint64_t> memo_;
  uint64_t next_ = 0;
};

struct Held {
  int64_t requested = 0, block = 0;
  size_t event = 0;  // that allocated it
};

class Snapshot {
 public:
  Snapshot(const Graph& graph, const MemoryLog& log) : graph_(graph), log_(log), modules_(op_modules(graph)) {}

  std::string text() {
    pickle_.begin_dict();
    pickle_.key("device_traces");
    pickle_.begin_list();
    trace();
    pickle_.end_list();
    pickle_.key("segments");
    pickle_.begin_list();
    for (const auto& [address, size] : segments_) segment(address, size);
    pickle_.end_list();
    pickle_.end_dict();
    return pickle_.finish();
  }

 private:
  void trace() {
    constexpr size_t kPart = 1000;
    pickle_.begin_list();
    int64_t reserved = 0;
    for (size_t i = 0; i < log_.events.size(); ++i) {
      const ReplayEvent& event = log_.events[i];
      if (i % kPart == kPart - 1) pickle_.next_part();
      if (event.bytes == 0) continue;  // the block stays where it is
      if (event.bytes < 0) {
        const Held held = held_[event.address];
        entry("free_requested", event, event.address, held.requested, i);
        entry("free_completed", event, event.address, held.requested, i);
        held_.erase(event.address);
        continue;
      }
      if (event.reserved > reserved) grow(event, event.reserved - reserved, i);
      reserved = event.reserved;
      entry("alloc", event, event.address, event.bytes, i);
      held_[event.address] = {event.bytes, event.block, i};
    }
    pickle_.end_list();
  }

  void grow(const ReplayEvent& event, int64_t bytes, size_t index) {
    auto segment = segments_.upper_bound(event.address);
    const bool expands =
        segment != segments_.begin() && event.address <= std::prev(segment)->first + std::prev(segment)->second;
    if (expands) {
      --segment;
      entry("segment_map", event, segment->first + segment->second, bytes, index);
      segment->second += bytes;
    } else {
      entry("segment_alloc", event, event.address, bytes, index);
      segments_[event.address] = bytes;
    }
  }

  void entry(const char* action, const ReplayEvent& event, int64_t address, int64_t size, size_t index) {
    pickle_.begin_dict();
    pickle_.key("action");
    pickle_.text(action);
    pickle_.key("addr");
    pickle_.number(address);
    pickle_.key("size");
    pickle_.number(size);
    pickle_.key("stream");
    pickle_.number(0);
    pickle_.key("time_us");
    pickle_.number(static_cast<int64_t>(index));
    pickle_.key("frames");
    frames(event);
    pickle_.end_dict();
  }

  // What the memory is for, the op and its module; a list of frames is written once for each op and kind.
  void frames(const ReplayEvent& event) {
    const bool rooted = event.storage.valid() && graph_.storage(event.storage).root != Root::none;
    const uint64_t key = rooted ? (uint64_t{1} << 40) + event.storage.value
                                : uint64_t{event.op.value} * kUses + static_cast<uint64_t>(event.use);
    const auto known = frames_.find(key);
    if (known != frames_.end()) return pickle_.recall(known->second);
    const int64_t line = event.op.valid() ? static_cast<int64_t>(event.op.value) : 0;
    pickle_.begin_list();
    if (rooted) {
      frame(std::string(name_of(event.use)), graph_.names()[graph_.storage(event.storage).root_name], line);
    } else {
      frame(std::string(name_of(event.use)), "kind", line);
    }
    if (event.op.valid()) {
      const Op& op = graph_.op(event.op);
      const std::string& module = graph_.names()[modules_[event.op.value]];
      frame(graph_.name(op), module.empty() ? "(outside any module)" : module, line);
      frame(std::string(name_of(op.phase)), "iteration", line);
    }
    pickle_.end_list();
    frames_[key] = pickle_.remember();
  }

  void frame(const std::string& name, const std::string& file, int64_t line) {
    pickle_.begin_dict();
    pickle_.key("name");
    pickle_.text(name);
    pickle_.key("filename");
    pickle_.text(file);
    pickle_.key("line");
    pickle_.number(line);
    pickle_.end_dict();
  }

  void segment(int64_t address, int64_t size) {
    int64_t allocated = 0;
    int64_t requested = 0;
    const auto first = held_.lower_bound(address);
    const auto last = held_.lower_bound(address + size);
    for (auto held = first; held != last; ++held) {
      allocated += held->second.block;
      requested += held->second.requested;
    }
    pickle_.begin_dict();
    const std::pair<const char*, int64_t> numbers[] = {{"device", 0},
                                                       {"address", address},
                                                       {"total_size", size},
                                                       {"stream", 0},
                                                       {"allocated_size", allocated},
                                                       {"active_size", allocated},
                                                       {"requested_size", requested}};
    for (const auto& [name, value] : numbers) {
      pickle_.key(name);
      pickle_.number(value);
    }
    pickle_.key("segment_type");
    pickle_.text(size == kSmallSegment ? "small" : "large");
    pickle_.key("blocks");
    pickle_.begin_list();
    int64_t at = address;
    for (auto held = first; held != last; ++held) {
      if (held->first > at) block(at, held->first - at, nullptr);
      block(held->first, held->second.block, &held->second);
      at = held->first + held->second.block;
    }
    if (at < address + size) block(at, address + size - at, nullptr);
    pickle_.end_list();
    pickle_.end_dict();
  }

  void block(int64_t address, int64_t size, const Held* held) {
    pickle_.begin_dict();
    pickle_.key("address");
    pickle_.number(address);
    pickle_.key("size");
    pickle_.number(size);
    pickle_.key("requested_size");
    pickle_.number(held == nullptr ? 0 : held->requested);
    pickle_.key("state");
    pickle_.text(held == nullptr ? "inactive" : "active_allocated");
    pickle_.key("frames");
    if (held == nullptr) {
      pickle_.begin_list();
      pickle_.end_list();
    } else {
      frames(log_.events[held->event]);
    }
    pickle_.end_dict();
  }

  const Graph& graph_;
  const MemoryLog& log_;
  std::vector<NameId> modules_;
  Pickle pickle_;
  std::map<int64_t, Held> held_;         // by address
  std::map<int64_t, int64_t> segments_;  // address -> bytes
  std::unordered_map<uint64_t, uint64_t> frames_;
};

}  // namespace

std::string to_snapshot(const Graph& graph, const MemoryLog& log) { return Snapshot(graph, log).text(); }

}  // namespace forerun
