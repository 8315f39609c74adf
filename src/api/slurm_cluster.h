// A real Slurm, by its own commands: submits a trace and reads back when its jobs started and ended; raises soft limits.
//
// Jobs sleep for their true duration divided by `speed`. Slurm's clock counts seconds, so a short trace should not be
// sped up much. The commands are those that PATH and SLURM_CONF find.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/job.h"
#include "cluster/machine.h"
#include "report/slurm.h"

namespace forerun {

// Runs a program with arguments and gives what it printed; an Error where it fails. Replaced in tests.
using CommandRunner = std::function<Result<std::string>(const std::vector<std::string>& command)>;
Result<std::string> run_command(const std::vector<std::string>& command);

// A job as `scontrol -o show job` prints it, with SLURM_TIME_FORMAT=%s. Times are seconds since 1970; 0: not yet.
struct SlurmJob {
  int64_t id = 0;
  std::string name;
  std::string state;
  int64_t submit = 0, start = 0, end = 0;
  int64_t run_seconds = 0;
  int64_t limit_seconds = 0;   // 0: none
  int64_t hard_limit_min = 0;  // as job_submit.lua notes it; 0: the limit is not soft
  [[nodiscard]] bool over() const;
};
std::vector<SlurmJob> parse_jobs(const std::string& text);  // lines that are no jobs are passed over
Result<std::vector<SlurmJob>> show_jobs(const CommandRunner& run);

struct SlurmReplayOptions {
  double speed = 1;
  std::string partition;                   // empty: the default one
  std::map<std::string, JobLimit> limits;  // by job: passed with the job; empty: left to job_submit.lua
  std::string policy;                      // simulated beside it; empty: none
  cluster::Cluster cluster;                // for that simulation
  double poll = 0.5;                       // seconds between looks
  CommandRunner run = run_command;
  std::function<void(size_t submitted, size_t over)> progress;
};

// Jobs that are still waiting when all else has ended for `kPatience` seconds are an Error that names the first.
Result<Replay> replay_on_slurm(const cluster::Workload& workload, const SlurmReplayOptions& options);

// Raises the limits of running jobs with a soft limit that have less than `within` seconds left: by `step` of the limit,
// up to the user's own. Gives the jobs raised, with their new limits.
Result<std::vector<SlurmJob>> extend_limits(double within, double step, const CommandRunner& run = run_command);

}  // namespace forerun
