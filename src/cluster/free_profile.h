// FreeProfile: how many GPUs of a pool are expected to be free, from now on, as a step function of time.
#pragma once

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "cluster/job.h"

namespace forerun::cluster {

class FreeProfile {
 public:
  FreeProfile(Time now, int32_t free) : steps_{{now, free}} {}

  // GPUs that come free at a time.
  void release(Time at, int32_t gpus) {
    for (size_t i = step_at(at); i < steps_.size(); ++i) steps_[i].free += gpus;
  }

  // The earliest time from which so many are free for so long; kNever where they never are.
  [[nodiscard]] Time earliest(int32_t gpus, Time duration) const {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].free < gpus) continue;
      const Time end = later(steps_[i].at, duration);
      size_t j = i + 1;
      while (j < steps_.size() && steps_[j].at < end && steps_[j].free >= gpus) ++j;
      if (j == steps_.size() || steps_[j].at >= end) return steps_[i].at;
      i = j;  // steps_[j] has too few
    }
    return kNever;
  }

  void reserve(Time from, Time duration, int32_t gpus) {
    const Time end = later(from, duration);
    if (end != kNever) step_at(end);
    for (size_t i = step_at(from); i < steps_.size() && steps_[i].at < end; ++i) {
      steps_[i].free -= gpus;
      CHECK(steps_[i].free >= 0, "reserved more GPUs than there are");
    }
  }

  // Forgets what lies before `now`.
  void advance(Time now) {
    size_t current = 0;
    while (current + 1 < steps_.size() && steps_[current + 1].at <= now) ++current;
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(current));
    steps_.front().at = std::max(steps_.front().at, now);
  }

 private:
  struct Step {
    Time at;
    int32_t free = 0;  // until the next step
  };

  // The step that begins at that time, made where there is none.
  size_t step_at(Time at) {
    const auto next =
        std::upper_bound(steps_.begin(), steps_.end(), at, [](Time t, const Step& s) { return t < s.at; });
    if (next == steps_.begin()) return 0;
    const auto current = next - 1;
    const auto place = static_cast<size_t>(current - steps_.begin());
    if (current->at == at) return place;
    steps_.insert(next, {at, current->free});  // moves the steps, so that places are counted before
    return place + 1;
  }

  std::vector<Step> steps_;  // by time
};

}  // namespace forerun::cluster
