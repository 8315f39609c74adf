// What policies made of a workload, as text, JSON and a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/schedule_result.h"
#include "cluster/sources/loaded_jobs.h"

namespace forerun {

// One policy on one workload, over one or more seeds of the predictor's or failures' randomness.
struct PolicyOutcome {
  std::string policy;
  std::vector<cluster::Metrics> runs;       // by seed
  std::optional<cluster::Metrics> perfect;  // the same policy with true durations; absent where they were used anyway
  double seconds = 0;                       // simulating took, over all runs
  cluster::Schedule first;                  // of the first seed; empty unless asked for

  [[nodiscard]] cluster::Metrics mean() const;  // over the runs
  // Half the width of the 95 % confidence interval of the mean JCT over seeds (Student's t); 0 for one run.
  [[nodiscard]] double jct_half_width() const;
  // Mean JCT over that with perfect knowledge, less 1.
  [[nodiscard]] std::optional<double> loss() const;
};

struct ScheduleReport {
  std::string source;  // the file, or what was made up
  std::string gpus;    // as the user wrote them
  std::string predictor;
  std::string predictor_source;  // where what it says comes from; empty: the name says it
  int64_t jobs = 0;
  int64_t filtered = 0;
  int64_t passed_over = 0;
  std::array<int64_t, cluster::kFaults> faults{};
  std::vector<std::string> real, made;
  std::vector<std::string> unused;  // columns of the file that mean nothing here
  std::vector<PolicyOutcome> outcomes;
};

std::string to_text(const ScheduleReport& report);
// One object for one policy, a list for several.
std::string to_json(const ScheduleReport& report);
// Distribution of completion times, utilisation over time, and a Gantt chart of the first jobs under the first policy.
// The outcomes must have their `first` schedules, with segments.
std::string to_svg(const ScheduleReport& report, const cluster::Workload& workload, const cluster::Cluster& cluster);

}  // namespace forerun
