// What `forerun slurm` prints: predicted limits as the CSV that job_submit.lua reads, and replays on a real Slurm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.h"

namespace forerun {

// What Slurm is told about a job.
struct JobLimit {
  std::string job;            // its name, or the description it was asked by
  double seconds = 0;         // predicted
  int64_t limit_minutes = 0;  // with margin; Slurm counts minutes
  Bytes memory;               // of one GPU; 0: not predicted
  int64_t priority = 0;       // 1 to 32 million, more for shorter jobs
  bool fits = true;           // in the memory of its GPU
  std::string gpu;
  Nanoseconds step;  // 0: not predicted
};

// job,seconds,time_limit_min,memory_mib,priority,fits: a line each, the heading first.
// A job with commas or quotes in it is quoted.
std::string limits_csv(const std::vector<JobLimit>& limits);
std::string limits_json(const std::vector<JobLimit>& limits);  // one object a line

// A job as Slurm ran it, beside what the simulator says. Seconds since the first submission, in the trace's time.
struct ReplayedJob {
  std::string job;
  int64_t slurm_id = 0;
  std::string state;  // "COMPLETED", "TIMEOUT", ...
  int32_t gpus = 0;
  std::optional<double> submit, start, end;  // missing: not yet
  std::optional<double> simulated_start;
};

struct Replay {
  std::vector<ReplayedJob> jobs;  // in order of submission
  double speed = 1;
  std::string policy;  // that was simulated; empty: none
  // Pairs of jobs that start one after the other in both, and of these those that do so in the same order.
  int64_t pairs = 0;
  int64_t pairs_alike = 0;
  std::string fault;      // why it ended early; empty: it did not
  size_t cancelled = 0;   // jobs of this replay, where it ended early
  size_t other_jobs = 0;  // that waited or ran when it began
  double away = 0;        // seconds that the controller did not answer
};

// Counts the pairs.
void compare_starts(Replay& replay);

std::string replay_csv(const Replay& replay);
std::string replay_json(const Replay& replay);
std::string replay_text(const Replay& replay);

}  // namespace forerun
