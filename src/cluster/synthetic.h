// Made-up jobs for clusters of any size: Poisson arrivals, log-normal durations, gangs of powers of two.
//
// Shares of gang sizes follow the Philly trace (93 % single GPUs) with a thin tail of larger gangs for larger clusters;
// durations spread as widely as its, are cut at 30 days, and scaled so that the jobs ask for `load` of the GPUs over
// the given days. Nothing here is measured: it serves to see how cost grows with size.
#pragma once

#include <string>

#include "base/work_control.h"
#include "cluster/machine.h"

namespace forerun::cluster {

struct SyntheticOptions {
  int64_t jobs = 100000;
  int32_t gpus = 1000;
  uint64_t seed = 1;
  double days = 0;  // 0: as many as give 27,400 jobs a day for 100,000 GPUs, in proportion (a year for 10 million jobs)
  double load = 0.95;
};

// "jobs=10000000,gpus=100000,seed=1".
Result<SyntheticOptions> parse_synthetic(const std::string& text);

// Whether there can be such jobs.
Status check_synthetic(const SyntheticOptions& options);

// `work` counts them, and may end the making early.
Workload synthetic_jobs(const SyntheticOptions& options, Work* work = nullptr);

}  // namespace forerun::cluster
