#include "cluster/job.h"

#include <algorithm>
#include <cmath>

namespace forerun::cluster {

Time time_from_seconds(double s) {
  const double ns = s * 1e9;
  if (!(std::abs(ns) < 9.2e18)) return kNever;
  return Time(std::llround(ns));
}

Time Durations::fastest(JobIndex job) const {
  Time least = kNever;
  for (TypeIndex type = 0; type < types_; ++type) least = std::min(least, of(job, type));
  return least;
}

std::string Workload::name_of(JobIndex job) const { return ids.empty() ? std::to_string(job) : ids[job]; }

}  // namespace forerun::cluster
