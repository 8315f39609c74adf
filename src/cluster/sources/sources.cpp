#include "cluster/sources/sources.h"

#include <fmt/format.h>

#include "base/nearest.h"

namespace forerun::cluster {

const std::vector<SourceEntry>& sources() {
  static const std::vector<SourceEntry> list = {
      {"csv", "plain table of jobs, described in docs/jobs.md", load_csv},
      {"philly", "Microsoft Philly trace: timestamp, duration, num_gpus, cluster", load_philly},
      {"hydra", "Hydra's cases: seconds on each GPU type, deadlines", load_hydra},
      {"gavel", "Gavel's traces: training steps, with throughputs by GPU type", load_gavel},
      {"pollux", "Pollux' workloads: applications with step times by placement; elastic", load_pollux},
      {"alibaba", "Alibaba's pods (openb): creation, scheduling and deletion", load_alibaba},
      {"pai", "Alibaba PAI's log of the mini-batches of one job", load_pai},
      {"sacct", "Slurm's accounting, from `sacct -X --parsable2`", load_sacct},
      {"jobcomp", "Slurm's log of completed jobs, from jobcomp/filetxt", load_jobcomp},
  };
  return list;
}

Result<LoadedJobs> load_jobs(const std::string& path, const std::string& format, const LoadOptions& options) {
  std::vector<std::string> names;
  for (const SourceEntry& entry : sources()) {
    if (format == entry.name) {
      LineReader::Options reading;
      if (entry.load == load_pollux) reading.archives = ByteSource::Archives::taken;
      auto reader = LineReader::open(path, reading);
      return reader ? entry.load(*std::move(reader), options) : Result<LoadedJobs>(reader.error());
    }
    names.emplace_back(entry.name);
  }
  return Error{fmt::format("no format of jobs is called '{}'", format), "--format",
               did_you_mean(format, names) + " docs/jobs.md describes them"};
}

}  // namespace forerun::cluster
