// A question with many cases as a Slurm array: one task a shard (base/shard.h), and behind them a job that merges the parts.
//
// Both are submitted by sbatch as words, never as text for a shell: the scripts are fixed, and the command that they run stands
// behind their names, where sbatch hands it on as it is. A task that is requeued, or whose worker is killed, goes on where it
// stopped; the merge runs once all tasks have ended well, and is cancelled where one cannot.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/slurm_commands.h"

namespace forerun {

struct SlurmArray {
  std::vector<std::string> question;  // program, verb and options; --shard and --out are added to it
  std::vector<std::string>
      merge;         // program, verb, "merge" and the form of the result; the parts and --out are added to it
  std::string name;  // of the jobs: "forerun-sweep"
  size_t shards = 1;
  unsigned threads = 1;              // of each
  std::vector<std::string> options;  // for sbatch beside its own: "partition=long"
  std::string result;                // file that the merge writes

  [[nodiscard]] std::string folder() const { return result + ".parts"; }  // of parts, scripts and logs
  [[nodiscard]] std::string part(size_t shard) const;
};

struct SlurmScript {
  std::string path;
  std::string text;
};

// The scripts and the sbatch commands that run them. `array_job`: the id that the first was given.
SlurmScript worker_script(const SlurmArray& array);
SlurmScript merge_script(const SlurmArray& array);
std::vector<std::string> array_command(const SlurmArray& array);
std::vector<std::string> merge_command(const SlurmArray& array, const std::string& array_job);

// What cannot be submitted: options that would change what is submitted, a path that Slurm would read otherwise.
Status check_array(const SlurmArray& array);

struct SlurmArrayJobs {
  std::string array, merge;  // ids
};

// Writes the scripts and submits both jobs. Where the second cannot be, the first is cancelled.
Result<SlurmArrayJobs> submit_array(const SlurmArray& array, const CommandRunner& run);

}  // namespace forerun
