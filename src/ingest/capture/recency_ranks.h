// RecencyRanks: how many distinct values were seen since one was seen last, in time that grows with the logarithm.
//
//   events   7  9  7  7  9
//   ranks    0  0  2  1  2     0: never seen; 1: the last one again; 2: the one before that
//
// Events are numbered from 0; each is the latest of its value until the value is seen again. A Fenwick tree counts those.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace forerun {

class RecencyRanks {
 public:
  explicit RecencyRanks(size_t events) : tree_(events + 1, 0) {}

  // The rank of a value whose latest event is `event`.
  [[nodiscard]] size_t rank(size_t event) const { return latest_ - up_to(event) + 1; }
  // The latest event of the value with this rank, which must be between 1 and size().
  [[nodiscard]] size_t event(size_t rank) const {
    size_t wanted = latest_ - rank + 1;  // so many latest events lie at or before the one sought
    size_t at = 0;
    for (size_t step = std::bit_floor(tree_.size() - 1); step > 0; step /= 2) {
      if (at + step >= tree_.size() || tree_[at + step] >= wanted) continue;
      at += step;
      wanted -= tree_[at];
    }
    return at;
  }
  // How many values were seen.
  [[nodiscard]] size_t size() const { return latest_; }

  void add(size_t event) { change(event, 1); }
  void remove(size_t event) { change(event, -1); }  // it is no longer the latest of its value

 private:
  [[nodiscard]] size_t up_to(size_t event) const {
    size_t count = 0;
    for (size_t at = event + 1; at > 0; at &= at - 1) count += tree_[at];
    return count;
  }
  void change(size_t event, int by) {
    for (size_t at = event + 1; at < tree_.size(); at += at & (~at + 1)) tree_[at] += static_cast<uint32_t>(by);
    latest_ += static_cast<size_t>(by);
  }

  std::vector<uint32_t> tree_;
  size_t latest_ = 0;
};

}  // namespace forerun
