// Time scaled from one GPU type or speed to another, exactly where speeds are ratios of integer times.
#pragma once

#include <algorithm>
#include <cmath>

#include "cluster/policy.h"

namespace forerun::cluster {

// time * numerator / denominator, rounded up, without overflow on the way; a denominator of 0 counts as 1.
inline Time scaled(Time time, Time numerator, Time denominator) {
  if (numerator == denominator) return time;
  __extension__ using Wide = __int128;
  const int64_t divisor = std::max<int64_t>(denominator.value, 1);
  const Wide result = (static_cast<Wide>(time.value) * numerator.value + (divisor - 1)) / divisor;
  return result > kNever.value ? kNever : Time(static_cast<int64_t>(result));
}

// How long the undisturbed gang would have taken for what a run at `speed` does in `time`, and the other way round.
inline Time at_full_speed(Time time, float speed) {
  return speed == 1 ? time : Time(std::llround(static_cast<double>(time.value) * static_cast<double>(speed)));
}
inline Time at_speed(Time time, float speed) {
  if (speed == 1) return time;
  const double slower = static_cast<double>(time.value) / static_cast<double>(speed);
  return slower < 9.2e18 ? Time(std::max<int64_t>(std::llround(slower), 1)) : kNever;
}

// What a run has got done by `now`, in the undisturbed gang's time on the job's fastest type.
inline Time useful_time(const Running& run, Time now, const Durations& durations) {
  const Time time = at_full_speed(std::max(now - run.since - run.restart, Time(0)), run.speed);
  if (durations.types() == 1) return time;
  return scaled(time, durations.fastest(run.job), durations.of(run.job, run.type));
}

}  // namespace forerun::cluster
