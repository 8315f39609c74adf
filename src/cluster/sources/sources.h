// The sources of jobs, by the name of their format; docs/jobs.md describes each and says which columns are real.
#pragma once

#include <string>
#include <vector>

#include "base/line_reader.h"
#include "cluster/sources/loaded_jobs.h"
#include "cluster/sources/step_tables.h"
#include "cluster/sources/tar_members.h"

namespace forerun::cluster {

struct SourceEntry {
  const char* name;
  const char* description;
  bool describes_training;  // its jobs may say what they train: their memory, steps and gradients are known
  Result<LoadedJobs> (*load)(LineReader reader, const LoadOptions& options);
};

// Adding a source is one file and one line in sources.cpp.
const std::vector<SourceEntry>& sources();

// The source of that name; an unknown one is answered with the nearest ones. `further` are names that the caller knows.
Result<const SourceEntry*> find_source(const std::string& format, const std::vector<std::string>& further = {});

Result<LoadedJobs> load_jobs(const std::string& path, const SourceEntry& source, const LoadOptions& options);
Result<LoadedJobs> load_jobs(const std::string& path, const std::string& format, const LoadOptions& options);

Result<LoadedJobs> load_philly(LineReader reader, const LoadOptions& options);
Result<LoadedJobs> load_hydra(LineReader reader, const LoadOptions& options);
Result<LoadedJobs> load_csv(LineReader reader, const LoadOptions& options);
// The same with measured step times in memory; null: none.
Result<LoadedJobs> load_csv_with(LineReader reader, const StepTables* tables, const LoadOptions& options);
Result<LoadedJobs> load_gavel(LineReader reader, const LoadOptions& options);
// The same with the throughputs in memory; `name` stands for their file in errors.
Result<LoadedJobs> load_gavel_with(LineReader reader, const std::string& throughputs, const std::string& name,
                                   const LoadOptions& options);
Result<LoadedJobs> load_pollux(LineReader reader, const LoadOptions& options);
Result<LoadedJobs> load_pollux_with(LineReader reader, const std::vector<TarMember>& step_times,
                                    const std::string& name, const LoadOptions& options);
Result<LoadedJobs> load_alibaba(LineReader reader, const LoadOptions& options);
Result<LoadedJobs> load_sacct(LineReader reader, const LoadOptions& options);
Result<LoadedJobs> load_jobcomp(LineReader reader, const LoadOptions& options);
Result<LoadedJobs> load_pai(LineReader reader, const LoadOptions& options);

}  // namespace forerun::cluster
