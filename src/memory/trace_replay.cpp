#include "memory/trace_replay.h"

#include <bit>
#include <deque>

namespace forerun {
namespace {

constexpr int64_t kUnit = 512;                 // bytes of one step of a recorded address
constexpr int64_t kFewNumbers = 64 * 1024;     // bytes: beyond it, what was there before is one block
constexpr int64_t kAnotherStream = INT64_MIN;  // than any recorded

// Wraps around rather than overflows where a record is senseless.
int64_t bytes_of(int64_t address) {
  return static_cast<int64_t>(static_cast<uint64_t>(address) * static_cast<uint64_t>(kUnit));
}

// Gives addresses small numbers in the order in which they appear.
class AddressNumbers {
 public:
  explicit AddressNumbers(size_t expected)
      : slots_(std::bit_ceil(2 * expected + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

  uint32_t operator[](int64_t address) {
    size_t at = (static_cast<uint64_t>(address) * 0x9e3779b97f4a7c15U) >> shift_;
    while (slots_[at].number != 0 && slots_[at].address != address) at = (at + 1) & (slots_.size() - 1);
    if (slots_[at].number == 0) slots_[at] = {address, ++count_};
    return slots_[at].number - 1;
  }
  [[nodiscard]] uint32_t count() const { return count_; }

 private:
  struct Slot {
    int64_t address = 0;
    uint32_t number = 0;  // from 1; 0: no address
  };
  std::vector<Slot> slots_;
  int shift_;
  uint32_t count_ = 0;
};

// The driver as the trace saw it.
class TracedSegments final : public SegmentSource {
 public:
  explicit TracedSegments(bool true_addresses) : true_addresses_(true_addresses) {}

  void segment_came(const AllocatorEvent& event) { due_.push_back(event); }
  void segment_went() { fails_next_ = true; }
  // A request is over: what it was to take and did not take is odd.
  void request_done() {
    odd_ += static_cast<int64_t>(due_.size());
    due_.clear();
    fails_next_ = false;
  }
  void begin() { odd_ = 0; }  // what was taken before does not count
  [[nodiscard]] int64_t odd() const { return odd_; }

  std::optional<int64_t> allocate(int64_t bytes) override {
    if (fails_next_) {
      fails_next_ = false;
      return std::nullopt;
    }
    const bool expected = !due_.empty() && due_.front().size == bytes;
    if (!expected) ++odd_;
    int64_t address = expected ? bytes_of(due_.front().address) : 0;
    if (!due_.empty()) due_.pop_front();
    if (!expected || !true_addresses_) address = *invented_.allocate(bytes) + (true_addresses_ ? kBeyond : 0);
    return address;
  }
  void release(int64_t /*address*/, int64_t /*bytes*/) override {}
  int64_t reserve(int64_t bytes) override { return invented_.reserve(bytes); }
  bool map(int64_t /*address*/, int64_t /*bytes*/) override { return true; }
  void unmap(int64_t /*address*/, int64_t /*bytes*/) override {}
  [[nodiscard]] int64_t capacity() const override { return invented_.capacity(); }

 private:
  static constexpr int64_t kBeyond = int64_t{1} << 56;  // above every recorded address
  bool true_addresses_;
  bool fails_next_ = false;
  std::deque<AllocatorEvent> due_;
  int64_t odd_ = 0;
  DeviceMemory invented_{kUnlimited / 4};
};

class Replay {
 public:
  Replay(const AllocatorTrace& trace, const AllocatorSettings& settings)
      : trace_(trace), segments_(trace.address_base.has_value()), allocator_(segments_, settings) {}

  TraceReplay run(int64_t base_allocated) {
    number_blocks();
    take_base(base_allocated);
    segments_.begin();
    for (size_t i = 0; i < trace_.events.size(); ++i) take(i);
    result_.true_addresses = trace_.address_base.has_value();
    result_.odd_segments = segments_.odd();
    result_.figures = allocator_.figures();
    return result_;
  }

 private:
  void take_base(int64_t bytes) {
    if (bytes <= 0) return;
    if (bytes > kFewNumbers) {
      (void)allocator_.allocate(static_cast<uint64_t>(bytes));
      return;
    }
    for (; bytes > 0; bytes -= kMinBlock) (void)allocator_.allocate(4);
  }

  void number_blocks() {
    AddressNumbers numbers(trace_.events.size());
    numbers_.reserve(trace_.events.size());
    for (const AllocatorEvent& event : trace_.events) numbers_.push_back(numbers[event.address]);
    blocks_.resize(numbers.count());
    freed_.resize(numbers.count());
  }

  void take(size_t index) {
    const AllocatorEvent& event = trace_.events[index];
    const uint32_t number = numbers_[index];
    switch (event.action) {
      case 'a': allocate(event, number); break;
      case 'r': free(number, index); break;
      case 'f':
        ++result_.events;
        if (freed_[number].valid()) allocator_.complete(freed_[number]);
        freed_[number] = {};
        break;
      case 'S': segments_.segment_came(event); break;
      case 'X': segments_.segment_went(); break;
      default: break;
    }
  }

  void allocate(const AllocatorEvent& event, uint32_t number) {
    ++result_.events;
    ++result_.allocations;
    const BlockId block = allocator_.allocate(static_cast<uint64_t>(event.size), event.stream);
    segments_.request_done();
    blocks_[number] = block;
    if (!trace_.address_base || !block.valid()) return;
    if (allocator_.address(block) != bytes_of(event.address)) ++result_.misplaced;
  }

  // A free that is not completed at once waits for another stream.
  void free(uint32_t number, size_t index) {
    ++result_.events;
    if (!blocks_[number].valid()) return;  // from before the trace
    const bool at_once =
        index + 1 < trace_.events.size() && trace_.events[index + 1].action == 'f' && numbers_[index + 1] == number;
    if (!at_once) allocator_.record_stream(blocks_[number], kAnotherStream);
    allocator_.free(blocks_[number]);
    freed_[number] = blocks_[number];
    blocks_[number] = {};
  }

  const AllocatorTrace& trace_;
  std::vector<uint32_t> numbers_;  // of the event's address
  std::vector<BlockId> blocks_;    // by number of address
  std::vector<BlockId> freed_;     // and not yet completed
  TracedSegments segments_;
  CachingAllocator allocator_;
  TraceReplay result_;
};

}  // namespace

TraceReplay replay_trace(const AllocatorTrace& trace, const AllocatorSettings& settings, int64_t base_allocated) {
  return Replay(trace, settings).run(base_allocated);
}

}  // namespace forerun
