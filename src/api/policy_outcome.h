// PolicyOutcome: what one policy made of a workload.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/breakdown.h"
#include "cluster/schedule_result.h"

namespace forerun {

// The figures of one run by user, group or size.
struct Breakdown {
  cluster::BreakdownBy by = cluster::BreakdownBy::user;
  std::vector<cluster::BreakdownRow> rows;
};

// One policy on one workload, over one or more seeds of the predictor's or failures' randomness.
class PolicyOutcome {
 public:
  std::string policy;
  std::vector<cluster::Metrics> runs;       // by seed
  std::optional<cluster::Metrics> perfect;  // the same policy with true durations; absent where they were used anyway
  double seconds = 0;                       // simulating took, over all runs
  cluster::Schedule first;                  // of the first seed; empty unless asked for
  std::vector<Breakdown> breakdowns;        // as asked for; every figure is the mean over the runs

  [[nodiscard]] cluster::Metrics mean() const;  // over the runs
  // Of one figure: its mean over the runs, and half the width of that mean's 95 % confidence interval (Student's t),
  // which is 0 for one run.
  [[nodiscard]] double mean_of(double (*figure)(const cluster::Metrics&)) const;
  [[nodiscard]] double half_width(double (*figure)(const cluster::Metrics&)) const;
  [[nodiscard]] double jct_half_width() const;
  // Takes a further run's breakdowns into the means.
  void add_breakdowns(std::vector<Breakdown> run);
  // Mean JCT over that with perfect knowledge, less 1.
  [[nodiscard]] std::optional<double> loss() const;

 private:
  int64_t broken_down_ = 0;  // runs that breakdowns are the mean of
};

}  // namespace forerun
