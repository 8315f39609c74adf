// What `forerun slurm` prints: predicted limits as the CSV that job_submit.lua reads, and replays on a real Slurm.
#pragma once

#include <string>
#include <vector>

#include "slurm/slurm_cluster.h"
#include "slurm/slurm_limits.h"

namespace forerun {

// job,seconds,time_limit_min,memory_mib,priority,fits: a line each, the heading first.
// A job with commas or quotes in it is quoted.
std::string limits_csv(const std::vector<JobLimit>& limits);
std::string limits_json(const std::vector<JobLimit>& limits);  // one object a line

std::string replay_csv(const Replay& replay);
std::string replay_json(const Replay& replay);
std::string replay_text(const Replay& replay);

}  // namespace forerun
