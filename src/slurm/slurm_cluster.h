// A trace on a real Slurm, by its own commands: submits it and reads back when its jobs started and ended.
//
// Jobs sleep for their true duration divided by `speed`. Slurm's clock counts seconds, so a short trace should not be
// sped up much. The commands are those that PATH and SLURM_CONF find. A controller that is away is asked again; each
// job is marked by its comment, so that one whose submission was cut off is found again and not submitted twice.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/work_control.h"
#include "cluster/job.h"
#include "cluster/machine.h"
#include "cluster/policies.h"
#include "slurm/slurm_commands.h"
#include "slurm/slurm_limits.h"

namespace forerun {

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

struct SlurmReplayOptions {
  double speed = 1;
  std::string partition;                      // empty: the default one
  std::map<std::string, JobLimit> limits;     // by job: passed with the job; empty: left to job_submit.lua
  std::optional<cluster::PolicySpec> policy;  // simulated beside it
  cluster::Cluster cluster;                   // for that simulation
  double poll = 0.5;                          // seconds between looks
  double away = 600;                          // seconds that the controller may be away at a time
  CommandRunner run = run_command;
  std::function<void(const Error&, double again_in)> trouble;  // the controller is away; seconds
  std::function<void(double seconds)> back;
};

// An Error where nothing was submitted. After that a fault stands in the answer, with what was seen up to then, and
// jobs of this replay that are not over are cancelled. Jobs that are still waiting when all else has ended for
// `kPatience` seconds are such a fault, and so is an end by `control`. Stages of its progress: jobs submitted, jobs over.
Result<Replay> replay_on_slurm(const cluster::Workload& workload, const SlurmReplayOptions& options,
                               const WorkControl& control = {});

}  // namespace forerun
