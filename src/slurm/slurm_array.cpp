#include "slurm/slurm_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "base/output_file.h"

namespace forerun {
namespace {

constexpr const char* kWorkerScript = R"(#!/bin/sh
# A task of a Slurm array: one shard of the question whose words follow the number of shards and the folder of their parts.
# A worker that is killed is started again, twice at most, and goes on where it stopped; one that ends by itself is not.
shards=$1
parts=$2
shift 2
for attempt in 1 2 3; do
  "$@" --shard "$SLURM_ARRAY_TASK_ID/$shards" --out "$parts/part-$SLURM_ARRAY_TASK_ID.jsonl"
  code=$?
  [ "$code" -gt 128 ] || exit "$code"
done
exit "$code"
)";

constexpr const char* kMergeScript = R"(#!/bin/sh
# Runs behind the array's tasks: the words that follow put their parts together.
exec "$@"
)";

// Options of sbatch that are this file's own.
constexpr std::array<std::string_view, 6> kOwnOptions = {"array", "dependency", "parsable",
                                                         "wrap",  "test-only",  "requeue"};

std::vector<std::string> sbatch(const SlurmArray& array, std::vector<std::string> own, const std::string& script) {
  std::vector<std::string> command = {"sbatch", "--parsable"};
  command.insert(command.end(), own.begin(), own.end());
  for (const std::string& option : array.options) command.push_back("--" + option);
  command.push_back(script);
  return command;
}

// "1234" of "1234;cluster\n".
Result<std::string> job_id(const std::string& printed) {
  const std::string id = printed.substr(0, printed.find_first_of(";\n"));
  if (!id.empty() && std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) return id;
  return Error{fmt::format("printed '{}', which is no job's id", printed), "sbatch --parsable",
               "Slurm 20.11 or later is needed"};
}

Result<std::string> submitted(const std::vector<std::string>& command, const CommandRunner& run) {
  const Result<std::string> printed = run(command);
  if (!printed) return printed.error();
  return job_id(*printed);
}

}  // namespace

std::string SlurmArray::part(size_t shard) const { return fmt::format("{}/part-{}.jsonl", folder(), shard); }

SlurmScript worker_script(const SlurmArray& array) { return {array.folder() + "/shard.sh", kWorkerScript}; }
SlurmScript merge_script(const SlurmArray& array) { return {array.folder() + "/merge.sh", kMergeScript}; }

std::vector<std::string> array_command(const SlurmArray& array) {
  std::vector<std::string> command = sbatch(
      array,
      {fmt::format("--array=0-{}", array.shards - 1), "--requeue", fmt::format("--cpus-per-task={}", array.threads),
       "--job-name=" + array.name, "--open-mode=append", fmt::format("--output={}/shard-%a.log", array.folder())},
      worker_script(array).path);
  command.push_back(fmt::format("{}", array.shards));
  command.push_back(array.folder());
  command.insert(command.end(), array.question.begin(), array.question.end());
  command.push_back(fmt::format("--threads={}", array.threads));
  return command;
}

std::vector<std::string> merge_command(const SlurmArray& array, const std::string& array_job) {
  std::vector<std::string> command =
      sbatch(array,
             {"--dependency=afterok:" + array_job, "--kill-on-invalid-dep=yes", "--requeue",
              fmt::format("--job-name={}-merge", array.name), fmt::format("--output={}/merge.log", array.folder())},
             merge_script(array).path);
  command.insert(command.end(), array.merge.begin(), array.merge.end());
  command.push_back("--out=" + array.result);
  for (size_t shard = 0; shard < array.shards; ++shard) command.push_back(array.part(shard));
  return command;
}

Status check_array(const SlurmArray& array) {
  for (const std::string& option : array.options) {
    const std::string name = option.substr(0, option.find('='));
    const bool named = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
    if (!named || name.front() == '-') {
      return Error{fmt::format("'{}' is no option of sbatch", option), "--slurm-option",
                   "write it without dashes, as --slurm-option partition=long"};
    }
    if (std::find(kOwnOptions.begin(), kOwnOptions.end(), name) != kOwnOptions.end()) {
      return Error{fmt::format("--{} is given to sbatch already", name), "--slurm-option", "leave it out"};
    }
  }
  if (array.result.find_first_of("%\\") != std::string::npos) {
    return Error{"has a character in its name that Slurm reads otherwise in names of logs", array.result,
                 "take a name without % and backslashes"};
  }
  return {};
}

Result<SlurmArrayJobs> submit_array(const SlurmArray& array, const CommandRunner& run) {
  if (Status status = check_array(array); !status.ok()) return status.error();
  std::error_code failed;
  std::filesystem::create_directories(array.folder(), failed);
  if (failed)
    return Error{"cannot be made: " + failed.message(), array.folder(), "give --out in a folder that can be written"};
  for (const SlurmScript& script : {worker_script(array), merge_script(array)}) {
    if (Status status = write_whole_file(script.path, script.text); !status.ok()) return status.error();
  }
  const Result<std::string> workers = submitted(array_command(array), run);
  if (!workers) return workers.error();
  const Result<std::string> merge = submitted(merge_command(array, *workers), run);
  if (!merge) {
    (void)run({"scancel", *workers});
    return merge.error();
  }
  return SlurmArrayJobs{*workers, *merge};
}

}  // namespace forerun
