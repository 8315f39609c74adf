// Soft limits of a real Slurm's running jobs, raised towards what the jobs would have had without prediction.
//
// job_submit.lua plans with predicted limits only while the watcher is at work: each look that went well renews a file
// that says until when it vouches. A controller that is away is asked again until it is back. A watcher that is told to
// stop takes its file away and gives every job its hard limit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/work_control.h"
#include "slurm/slurm_commands.h"

namespace forerun {

struct ExtendOptions {
  double within = 120;  // seconds left from which on a limit is raised
  double step = 0.5;    // share of the limit to raise it by
  CommandRunner run = run_command;
  std::function<int64_t()> now;  // seconds since 1970; empty: the clock
};

// What one look did.
struct Extended {
  std::vector<SlurmJob> raised;  // with their new limits
  std::vector<Error> faults;     // jobs whose limit could not be raised; the others were looked after
  size_t soft = 0;               // jobs that wait or run under a soft limit, after it
};

// Raises the limits of running jobs with a soft limit that are near it, up to the hard one at most.
Result<Extended> extend_limits(const ExtendOptions& options);

// Gives all waiting and running jobs with a soft limit their hard one.
Result<Extended> release_limits(const ExtendOptions& options);

struct WatchOptions {
  ExtendOptions extend;
  double every = 30;  // seconds
  std::string alive;  // the file that job_submit.lua looks for; empty: none
  std::function<void(const Extended&)> looked;
  std::function<void(const Error&, double again_in)> trouble;  // seconds
  std::function<void(double away)> back;                       // seconds without a look that went well
  std::function<void(double seconds)> pause;                   // empty: sleeps, and wakes for a stop
};

// Looks every so often until it is stopped, which is its usual end; gives what the release at its end did. An Error is a fault of the options,
// a file that cannot be written or a Slurm that is not installed; what it answers later is told to `trouble` and tried
// again.
Result<Extended> watch_limits(const WatchOptions& options, const WorkControl& control = {});

// The shortest limit in minutes that no look every so many seconds can miss.
int64_t shortest_watched(double every);

// Sleeps until the time is over or a stop is asked for.
void pause_unless(double seconds, const std::stop_token& stop);

}  // namespace forerun
