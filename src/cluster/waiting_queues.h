// Queues of waiting jobs: those of larger priority first, then by a key, ties by order of arrival.
//
// HeadQueue gives the first job. SkipQueue gives the first that fits: jobs are kept apart by the size of their gang and
// the GPU types they can use, so that what does not fit is passed over class by class and never walked through. Real
// workloads have about ten classes; a pass costs one comparison for each.
#pragma once

#include <algorithm>
#include <compare>
#include <optional>
#include <vector>

#include "cluster/policy.h"

namespace forerun::cluster {

struct Waiting {
  int64_t key = 0;  // smaller goes first
  JobIndex job = kNoJob;
  int32_t rank = 0;  // before the key: minus the job's priority, in policies that go by it
  friend bool operator==(const Waiting&, const Waiting&) = default;
  friend std::strong_ordering operator<=>(const Waiting& a, const Waiting& b) {
    if (a.rank != b.rank) return a.rank <=> b.rank;
    return a.key != b.key ? a.key <=> b.key : a.job <=> b.job;
  }
};

inline int32_t rank_of(const ClusterView& view, JobIndex job) { return -view.job(job).priority; }

class HeadQueue {
 public:
  void add(const Waiting& waiting) {
    heap_.push_back(waiting);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] size_t size() const { return heap_.size(); }
  [[nodiscard]] const Waiting& first() const { return heap_.front(); }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }

 private:
  std::vector<Waiting> heap_;
};

// What decides whether a job fits: its gang and the types it can use.
struct GangClass {
  int32_t gpus = 0;
  uint64_t types = 0;  // a bit for each of the first 64 types
  friend auto operator<=>(const GangClass&, const GangClass&) = default;

  static GangClass of(const ClusterView& view, JobIndex job);
  // Whether so many GPUs are free on a type it can use.
  [[nodiscard]] bool fits(const std::vector<int32_t>& free) const;
  [[nodiscard]] bool usable(TypeIndex type) const { return (types >> type & 1) != 0; }
};

class SkipQueue {
 public:
  void add(const ClusterView& view, const Waiting& waiting);
  [[nodiscard]] bool empty() const { return size_ == 0; }
  // Takes out the first job, in key order, that some usable type has room for.
  std::optional<Waiting> take_first_fitting(const ClusterView& view);

 private:
  struct Class {
    GangClass gang;
    HeadQueue queue;
  };
  std::vector<Class> classes_;  // by gang
  size_t size_ = 0;
};

}  // namespace forerun::cluster
