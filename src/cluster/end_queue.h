// EndQueue: when running jobs will end, soonest first; ties go by the sequence of starting.
//
// A binary heap. A run that is stopped early stays in it until it surfaces or the stale entries outnumber the others,
// so that stopping costs O(1).
#pragma once

#include <algorithm>
#include <vector>

#include "cluster/job.h"

namespace forerun::cluster {

class EndQueue {
 public:
  struct End {
    Time time;
    uint64_t sequence = 0;  // of starting: unique
    JobIndex job = kNoJob;
  };

  void add(const End& end) {
    heap_.push_back(end);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  // Says that one entry is no longer true; `is_stale(End)` is asked for all when too many have gathered.
  template <class IsStale>
  void stopped(const IsStale& is_stale) {
    if (++stale_ < kFewest || stale_ * 2 < heap_.size()) return;
    std::erase_if(heap_, is_stale);
    std::make_heap(heap_.begin(), heap_.end(), later);
    stale_ = 0;
  }

  // The next end that is not stale; kNever where there is none.
  template <class IsStale>
  Time next_time(const IsStale& is_stale) {
    while (!heap_.empty() && is_stale(heap_.front())) {
      pop();
      if (stale_ > 0) --stale_;
    }
    return heap_.empty() ? kNever : heap_.front().time;
  }
  // Only after next_time(), which sees to it that the first is not stale.
  [[nodiscard]] const End& front() const { return heap_.front(); }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }

 private:
  static constexpr size_t kFewest = 1024;
  static bool later(const End& a, const End& b) { return a.time != b.time ? a.time > b.time : a.sequence > b.sequence; }
  std::vector<End> heap_;
  size_t stale_ = 0;
};

}  // namespace forerun::cluster
