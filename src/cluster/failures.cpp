#include "cluster/failures.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace forerun::cluster {

FailureProcess::FailureProcess(const Cluster& cluster, const FailureModel& model)
    : model_(model), random_(model.seed), next_failure_(cluster.pools.size()), drawn_(cluster.pools.size(), false) {}

double FailureProcess::uniform() { return (static_cast<double>(random_() >> 11) + 1) * 0x1p-53; }

Time FailureProcess::next_time(Time now, const std::vector<int32_t>& units) {
  Time next = repairs_.empty() ? kNever : repairs_.front().time;
  for (TypeIndex type = 0; type < units.size(); ++type) {
    if (!drawn_[type]) {
      const double hours = units[type] == 0 ? INFINITY : -std::log(uniform()) * model_.mean_hours_between / units[type];
      const Time wait = time_from_seconds(hours * 3600);
      next_failure_[type] = {later(now, wait), type, 1, -1, false};
      drawn_[type] = true;
    }
    next = std::min(next, next_failure_[type].time);
  }
  return next;
}

FailureProcess::Event FailureProcess::take() {
  Event* first = repairs_.empty() ? nullptr : &repairs_.front();
  for (Event& event : next_failure_) {
    if (first == nullptr || event.time < first->time) first = &event;
  }
  CHECK(first != nullptr && first->time != kNever, "no event to take");
  const Event event = *first;
  drawn_[event.type] = false;
  if (event.repair) repairs_.pop_front();
  return event;
}

void FailureProcess::repair_later(Time now, Event failed) {
  failed.repair = true;
  failed.time = later(now, model_.repair);
  repairs_.push_back(failed);
}

int32_t FailureProcess::pick(int32_t count) { return std::min(static_cast<int32_t>(uniform() * count), count - 1); }

}  // namespace forerun::cluster
