// --slurm N: the shards of a question as the tasks of a Slurm array (slurm/slurm_array.h).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/shard_options.h"

namespace forerun::cli {

struct SlurmArrayOptions {
  size_t shards = 0;  // 0: not asked for
  std::vector<std::string> options;
  bool dry_run = false;
  [[nodiscard]] bool any() const { return shards > 0; }
};

void add_slurm_array_options(CLI::App& verb, SlurmArrayOptions& options);
// Throws CLI11's usage errors.
void check_slurm_array_options(const SlurmArrayOptions& options, const ShardOptions& shard);

struct SlurmArrayAsked {
  std::string result;             // file that the merge writes
  unsigned threads = 0;           // of each task; 0: one
  std::vector<std::string> form;  // of the result, as words for `merge`
};

// Submits the verb's question and says what was submitted, or prints what would be; the exit code.
int submit_slurm_array(const SlurmArrayOptions& options, const CLI::App& verb, const ShardedWork& work,
                       const SlurmArrayAsked& asked);

}  // namespace forerun::cli
