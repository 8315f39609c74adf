// "What should Slurm be told about these jobs, and what does it make of them?": the questions of `forerun slurm`. The stage
// slurm/ answers them: limits of jobs (slurm/slurm_limits.h), answers at a socket (slurm_serve.h), a trace on a real Slurm
// (slurm_cluster.h), soft limits raised (slurm_watch.h), a sharded question as an array (slurm_array.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/schedule.h"
#include "base/work_control.h"
#include "slurm/slurm_array.h"
#include "slurm/slurm_cluster.h"
#include "slurm/slurm_limits.h"
#include "slurm/slurm_serve.h"
#include "slurm/slurm_watch.h"

namespace forerun {

// A trace on a real Slurm, beside what the simulator says of it.
struct SlurmReplayRequest {
  std::string jobs;  // a file of jobs
  JobFormat format;
  cluster::Cluster cluster;        // for checking the jobs, and for the simulation
  std::string limits;              // a file of `forerun slurm limits`, to pass with each job; empty: none
  SlurmReplayOptions replay = {};  // its cluster and limits are filled in here
};

Result<Replay> slurm_replay(const SlurmReplayRequest& request, const WorkControl& control = {});

}  // namespace forerun
