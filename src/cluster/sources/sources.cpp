#include "cluster/sources/sources.h"

#include <fmt/format.h>

#include "base/nearest.h"

namespace forerun::cluster {

const std::vector<SourceEntry>& sources() {
  static const std::vector<SourceEntry> list = {
      {"csv", "plain table of jobs, described in docs/jobs.md", true, load_csv},
      {"philly", "Microsoft Philly trace: timestamp, duration, num_gpus, cluster", false, load_philly},
      {"hydra", "Hydra's cases: seconds on each GPU type, deadlines", false, load_hydra},
      {"gavel", "Gavel's traces: training steps, with throughputs by GPU type", false, load_gavel},
      {"pollux", "Pollux' workloads: applications with step times by placement; elastic", false, load_pollux},
      {"alibaba", "Alibaba's pods (openb): creation, scheduling and deletion", false, load_alibaba},
      {"pai", "Alibaba PAI's log of the mini-batches of one job", false, load_pai},
      {"sacct", "Slurm's accounting, from `sacct -X --parsable2`", false, load_sacct},
      {"jobcomp", "Slurm's log of completed jobs, from jobcomp/filetxt", false, load_jobcomp},
  };
  return list;
}

Result<const SourceEntry*> find_source(const std::string& format, const std::vector<std::string>& further) {
  std::vector<std::string> names;
  for (const SourceEntry& entry : sources()) {
    if (format == entry.name) return &entry;
    names.emplace_back(entry.name);
  }
  names.insert(names.end(), further.begin(), further.end());
  return Error{fmt::format("no format of jobs is called '{}'", format), "--format",
               did_you_mean(format, names) + " docs/jobs.md describes them"};
}

Result<LoadedJobs> load_jobs(const std::string& path, const SourceEntry& source, const LoadOptions& options) {
  LineReader::Options reading;
  if (source.load == load_pollux) reading.archives = ByteSource::Archives::taken;
  auto reader = LineReader::open(path, reading);
  return reader ? source.load(*std::move(reader), options) : Result<LoadedJobs>(reader.error());
}

Result<LoadedJobs> load_jobs(const std::string& path, const std::string& format, const LoadOptions& options) {
  const auto source = find_source(format);
  return source ? load_jobs(path, **source, options) : Result<LoadedJobs>(source.error());
}

}  // namespace forerun::cluster
