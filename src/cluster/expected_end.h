// When a run is expected to end, by what was predicted of it and by how long it has gone on.
#pragma once

#include <algorithm>

#include "cluster/policy.h"

namespace forerun::cluster {

// The predicted end while that lies ahead. A run that has outlasted it is given as much time again as it has been given so
// far, at least a second, and so on: of durations as widely spread as those of training jobs, about half of the runs that
// reach some length reach twice that. It stands until it has passed too, as a limit that an operator extends does.
inline Time expected_end(const Running& run, Time now) {
  if (run.predicted_end > now) return run.predicted_end;
  Time given = std::max(run.predicted_end - run.since, kSecond);
  while (later(run.since, given) <= now) given = later(given, given);
  return later(run.since, given);
}

}  // namespace forerun::cluster
