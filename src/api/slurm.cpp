#include "api/slurm.h"

namespace forerun {

Result<Replay> slurm_replay(const SlurmReplayRequest& request, const WorkControl& control) {
  if (request.format.source == nullptr) {
    return Error{"measured runs cannot be submitted to Slurm", request.jobs,
                 "give a file of jobs, as docs/jobs.md says"};
  }
  Work work(control, "rows read");
  cluster::LoadOptions load;
  load.cluster = &request.cluster;
  load.work = &work;
  const auto jobs = cluster::load_jobs(request.jobs, *request.format.source, load);
  if (!jobs) return jobs.error();
  SlurmReplayOptions options = request.replay;
  options.cluster = request.cluster;
  if (!request.limits.empty()) {
    const auto limits = read_limits(request.limits);
    if (!limits) return limits.error();
    for (const JobLimit& limit : *limits) options.limits[limit.job] = limit;
  }
  return replay_on_slurm(jobs->workload, options, control);
}

}  // namespace forerun
