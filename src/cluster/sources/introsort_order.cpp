#include "cluster/sources/introsort_order.h"

#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

namespace forerun::cluster {
namespace {

constexpr int64_t kInsertion = 15;  // distance from first to last element up to which a part is sorted by insertion

class Introsort {
 public:
  Introsort(const std::vector<int64_t>& keys, std::vector<uint32_t>& order) : keys_(keys), order_(order) {}

  void sort() {
    const auto size = static_cast<int64_t>(order_.size());
    if (size < 2) return;
    const int depth = 2 * (static_cast<int>(std::bit_width(static_cast<uint64_t>(size))) - 1);
    std::vector<Part> later = {{0, size - 1, depth}};
    while (!later.empty()) {
      Part part = later.back();
      later.pop_back();
      bool sorted = false;
      if (part.depth < 0) {
        heapsort(part.first, part.last);
        sorted = true;
      }
      while (!sorted && part.last - part.first > kInsertion) {
        const int64_t middle = partition(part.first, part.last);
        --part.depth;
        if (middle - part.first < part.last - middle) {
          later.push_back({middle + 1, part.last, part.depth});
          part.last = middle - 1;
        } else {
          later.push_back({part.first, middle - 1, part.depth});
          part.first = middle + 1;
        }
      }
      if (!sorted) insertion(part.first, part.last);
    }
  }

 private:
  struct Part {
    int64_t first, last;  // inclusive
    int depth;            // partitions left before heapsort takes over
  };

  [[nodiscard]] int64_t key(int64_t place) const { return keys_[order_[static_cast<size_t>(place)]]; }
  void swap(int64_t a, int64_t b) { std::swap(order_[static_cast<size_t>(a)], order_[static_cast<size_t>(b)]); }
  void swap_if_less(int64_t a, int64_t b) {
    if (key(a) < key(b)) swap(a, b);
  }

  // Puts the median of three at its place and returns it.
  int64_t partition(int64_t first, int64_t last) {
    const int64_t middle = first + ((last - first) >> 1);
    swap_if_less(middle, first);
    swap_if_less(last, middle);
    swap_if_less(middle, first);
    const int64_t pivot = key(middle);
    int64_t left = first;
    int64_t right = last - 1;
    swap(middle, right);
    while (true) {
      do ++left;
      while (key(left) < pivot);
      do --right;
      while (pivot < key(right));
      if (left >= right) break;
      swap(left, right);
    }
    swap(left, last - 1);
    return left;
  }

  void insertion(int64_t first, int64_t last) {
    for (int64_t i = first + 1; i <= last; ++i) {
      for (int64_t j = i; j > first && key(j) < key(j - 1); --j) swap(j, j - 1);
    }
  }

  void sift(int64_t base, int64_t root, int64_t size) {  // places within a part count from 1
    for (int64_t child = root * 2; child <= size; child = root * 2) {
      if (child < size && key(base + child) < key(base + child + 1)) ++child;
      if (!(key(base + root) < key(base + child))) return;
      swap(base + root, base + child);
      root = child;
    }
  }

  void heapsort(int64_t first, int64_t last) {
    const int64_t base = first - 1;
    const int64_t size = last - first + 1;
    for (int64_t root = size / 2; root > 0; --root) sift(base, root, size);
    for (int64_t end = size; end > 1; --end) {
      swap(base + 1, base + end);
      sift(base, 1, end - 1);
    }
  }

  const std::vector<int64_t>& keys_;
  std::vector<uint32_t>& order_;
};

}  // namespace

std::vector<uint32_t> introsort_order(const std::vector<int64_t>& keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0U);
  Introsort(keys, order).sort();
  return order;
}

}  // namespace forerun::cluster
