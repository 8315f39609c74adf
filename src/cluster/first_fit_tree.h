// FirstFitTree: jobs in order of arrival; finds the first whose time is at most a limit, in O(log n).
//
// A binary tree of minima over the jobs' times. A job that leaves keeps its place with kNever, so that one that comes back
// (after a failure) stands where it stood. Grows at the end by doubling.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "cluster/job.h"

namespace forerun::cluster {

class FirstFitTree {
 public:
  // Adds a job behind all others, or puts one back that was there before.
  void add(JobIndex job, Time time) {
    if (jobs_.empty() || jobs_.back() < job) {
      jobs_.push_back(job);
      if (jobs_.size() > leaves_) grow();
      set(jobs_.size() - 1, time);
    } else {
      set(place_of(job), time);
    }
  }
  void remove(JobIndex job) { set(place_of(job), kNever); }

  [[nodiscard]] std::optional<JobIndex> first_within(Time limit) const {
    if (leaves_ == 0 || least_[1] > limit || least_[1] == kNever) return std::nullopt;
    size_t node = 1;
    while (node < leaves_) node = least_[2 * node] <= limit && least_[2 * node] != kNever ? 2 * node : 2 * node + 1;
    return jobs_[node - leaves_];
  }

 private:
  [[nodiscard]] size_t place_of(JobIndex job) const {
    return static_cast<size_t>(std::lower_bound(jobs_.begin(), jobs_.end(), job) - jobs_.begin());
  }
  void set(size_t place, Time time) {
    size_t node = leaves_ + place;
    least_[node] = time;
    for (node /= 2; node > 0; node /= 2) least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  }
  void grow() {
    const size_t leaves = std::max<size_t>(leaves_ * 2, 16);
    std::vector<Time> least(2 * leaves, kNever);
    std::copy(least_.begin() + static_cast<std::ptrdiff_t>(leaves_), least_.end(),
              least.begin() + static_cast<std::ptrdiff_t>(leaves));
    for (size_t node = leaves - 1; node > 0; --node) least[node] = std::min(least[2 * node], least[2 * node + 1]);
    least_ = std::move(least);
    leaves_ = leaves;
  }

  std::vector<JobIndex> jobs_;  // ascending
  std::vector<Time> least_;     // node 1 is the root, leaves from leaves_ on
  size_t leaves_ = 0;
};

}  // namespace forerun::cluster
