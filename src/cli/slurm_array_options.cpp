#include "cli/slurm_array_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "api/slurm.h"
#include "base/json_writer.h"
#include "cli/command.h"

namespace forerun::cli {
namespace {

namespace fs = std::filesystem;

// Words of a command for people; one with blanks or the like in it stands in quotes.
std::string words_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("-_./=:,%+@*").find(static_cast<char>(c)) != std::string_view::npos;
    });
    text += (text.empty() ? "" : " ") + (plain ? word : json_quoted(word));
  }
  return text;
}

int print_dry_run(const SlurmArray& array) {
  for (const SlurmScript& script : {worker_script(array), merge_script(array)}) {
    fmt::print("{}:\n{}\n", script.path, script.text);
  }
  fmt::print("{}\n\n{}\n", words_text(array_command(array)), words_text(merge_command(array, "ARRAY-JOB")));
  return kDone;
}

// Parts that are there must be of this question, and nobody at work on them.
Status check_parts(const SlurmArray& array, const ShardedWork& work) {
  for (size_t index = 0; index < array.shards; ++index) {
    std::error_code unknown;
    if (!fs::exists(array.part(index), unknown)) continue;
    const auto part = PartFile::open(array.part(index), work, {index, array.shards});
    if (!part) return part.error();
  }
  return {};
}

}  // namespace

void add_slurm_array_options(CLI::App& verb, SlurmArrayOptions& options) {
  const char* group = "Many machines";
  verb.add_option(
          "--slurm", options.shards,
          "Submits N shards as a Slurm array, and a job that merges them into --out FILE in the form of --json, --csv "
          "or neither; asked again after a failure, it goes on where they stopped")
      ->check(CLI::Range(size_t{1}, size_t{100'000}))
      ->type_name("N")
      ->group(group);
  verb.add_option(
          "--slurm-option", options.options,
          "An option of sbatch for both jobs, without its dashes: partition=long, time=30, account=me; repeatable")
      ->allow_extra_args(false)
      ->type_name("OPTION")
      ->group(group);
  verb.add_flag("--slurm-dry-run", options.dry_run, "Prints the scripts and commands, and submits nothing")
      ->group(group);
}

void check_slurm_array_options(const SlurmArrayOptions& options, const ShardOptions& shard) {
  if (!options.any() && (options.dry_run || !options.options.empty())) {
    throw CLI::RequiredError(options.dry_run ? "--slurm-dry-run requires --slurm" : "--slurm-option requires --slurm");
  }
  if (!options.any()) return;
  if (!shard.shard.empty()) throw CLI::ValidationError("--shard", "is given by --slurm to each of its tasks");
  if (shard.out.empty()) throw CLI::RequiredError("--slurm requires --out, the file for the merged result: --out");
}

int submit_slurm_array(const SlurmArrayOptions& options, const CLI::App& verb, const ShardedWork& work,
                       const SlurmArrayAsked& asked) {
  if (options.shards > work.cases) {
    return fail({fmt::format("there are {} cases for {} shards", work.cases, options.shards), "--slurm",
                 fmt::format("give at most {}", work.cases)});
  }
  std::error_code unknown;
  const std::string program = fs::read_symlink("/proc/self/exe", unknown).string();
  SlurmArray array{.name = "forerun-" + work.verb,
                   .shards = options.shards,
                   .threads = std::max(asked.threads, 1U),
                   .options = options.options,
                   .result = fs::absolute(asked.result).lexically_normal().string()};
  array.question = command_words(verb);
  array.question.insert(array.question.begin(), program);
  array.merge = {program, work.verb, "merge"};
  array.merge.insert(array.merge.end(), asked.form.begin(), asked.form.end());
  if (const Status status = check_array(array); !status.ok()) return fail(status.error());
  if (options.dry_run) return print_dry_run(array);
  if (const Status status = check_parts(array, work); !status.ok()) return fail(status.error());
  const auto jobs = submit_array(array, run_command);
  if (!jobs) return fail(jobs.error());
  fmt::print(
      "job {}: {} cases in {} shards, parts and logs in {}\njob {}: merges them into {} once all have ended well\n",
      jobs->array, work.cases, array.shards, array.folder(), jobs->merge, array.result);
  return kDone;
}

}  // namespace forerun::cli
