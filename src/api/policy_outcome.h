// PolicyOutcome: what one policy made of a workload.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/schedule_result.h"

namespace forerun {

// One policy on one workload, over one or more seeds of the predictor's or failures' randomness.
struct PolicyOutcome {
  std::string policy;
  std::vector<cluster::Metrics> runs;       // by seed
  std::optional<cluster::Metrics> perfect;  // the same policy with true durations; absent where they were used anyway
  double seconds = 0;                       // simulating took, over all runs
  cluster::Schedule first;                  // of the first seed; empty unless asked for

  [[nodiscard]] cluster::Metrics mean() const;  // over the runs
  // Of one figure: its mean over the runs, and half the width of that mean's 95 % confidence interval (Student's t),
  // which is 0 for one run.
  [[nodiscard]] double mean_of(double (*figure)(const cluster::Metrics&)) const;
  [[nodiscard]] double half_width(double (*figure)(const cluster::Metrics&)) const;
  [[nodiscard]] double jct_half_width() const;
  // Mean JCT over that with perfect knowledge, less 1.
  [[nodiscard]] std::optional<double> loss() const;
};

}  // namespace forerun
