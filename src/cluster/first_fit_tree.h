// FirstFitTree: jobs in order of arrival; finds the first whose time is at most a limit, in O(log n).
//
// A binary tree of minima over the jobs' times. A job that leaves keeps its place with kNever, so that one that comes back
// (after a failure) stands where it stood. Grows at the end by doubling; a job that comes late (held back by a quota or by
// others that it runs after) has the tree made anew, of those that are in it.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/job.h"

namespace forerun::cluster {

class FirstFitTree {
 public:
  void add(JobIndex job, Time time) {
    const size_t place = place_of(job);
    if (place < jobs_.size() && jobs_[place] != job) {
      make_anew(job, time);
      return;
    }
    if (place == jobs_.size()) jobs_.push_back(job);
    if (jobs_.size() > leaves_) grow();
    set(place, time);
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
  // With a job that stands before some that are there already.
  void make_anew(JobIndex job, Time time) {
    FirstFitTree anew;
    for (size_t place = 0; place < jobs_.size(); ++place) {
      if (jobs_[place] > job && (anew.jobs_.empty() || anew.jobs_.back() < job)) anew.add(job, time);
      if (least_[leaves_ + place] != kNever) anew.add(jobs_[place], least_[leaves_ + place]);
    }
    if (anew.jobs_.empty() || anew.jobs_.back() < job) anew.add(job, time);
    *this = std::move(anew);
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
