#include "cli/shard_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/provenance.h"
#include "cli/command.h"

namespace forerun::cli {
namespace {

constexpr const char* kGroup = "Many machines";

// Options that change nothing of what is answered to a case.
constexpr std::array<std::string_view, 12> kNotAsked = {
    "--help", "--shard", "--out",   "--threads",      "--time-limit",    "--memory-limit",
    "--json", "--csv",   "--slurm", "--slurm-option", "--slurm-dry-run", "--html"};

bool is_asked(const CLI::Option& option) {
  const std::string name = option.get_name();
  return option.count() > 0 && std::find(kNotAsked.begin(), kNotAsked.end(), name) == kNotAsked.end();
}

}  // namespace

void add_shard_option(CLI::App& verb, std::string& shard, const std::string& cases) {
  verb.add_option(
          "--shard", shard,
          fmt::format("I/N: only every N-th of the {}, from I on (0/N to N-1/N together are all of them), kept in "
                      "--out FILE; `merge` puts the parts together",
                      cases))
      ->check([](const std::string& text) {
        const auto parsed = parse_shard(text);
        return parsed ? std::string() : parsed.error().what + "; " + parsed.error().remedy;
      })
      ->type_name("I/N")
      ->group(kGroup);
}

void add_shard_options(CLI::App& verb, ShardOptions& options, const std::string& cases) {
  add_shard_option(verb, options.shard, cases);
  verb.add_option(
          "--out", options.out,
          fmt::format("Keeps each of the {} in this file as soon as it is done, and prints none; started again, it "
                      "goes on where it stopped",
                      cases))
      ->group(kGroup);
  verb.get_option("--shard")->needs(verb.get_option("--out"));
}

Error machine_not_named() {
  return {"shards are told which machine they are for", "the machine.json of the configuration folder",
          "name it with --machine, or give --machine none"};
}

ShardedWork::Words request_words(const CLI::App& verb) {
  ShardedWork::Words words;
  for (const CLI::Option* option : verb.get_options()) {
    if (is_asked(*option)) words.emplace_back(option->get_name(), option->results());
  }
  return words;
}

std::vector<std::string> command_words(const CLI::App& verb) {
  std::vector<std::string> words = {verb.get_name()};
  for (const CLI::Option* option : verb.get_options()) {
    if (!is_asked(*option)) continue;
    const bool flag = option->get_items_expected_max() == 0;
    for (const std::string& value : option->results()) {
      words.push_back(flag ? option->get_name() : option->get_positional() ? value : option->get_name() + "=" + value);
    }
  }
  return words;
}

Result<ShardedWork> sharded_work(const CLI::App& verb, size_t cases, const std::vector<std::string>& files,
                                 const std::string& about) {
  const Result<std::string> program = program_fingerprint();
  if (!program) return program.error();
  Result<std::string> data = data_fingerprint();
  if (!data) return data.error();
  ShardedWork work{verb.get_name(), cases, fmt::format("{}, build {}", FORERUN_VERSION, *program), std::move(*data)};
  work.request = request_words(verb);
  work.about = about;
  for (const std::string& file : files) {
    std::error_code unknown;
    if (!std::filesystem::exists(file, unknown)) continue;
    const Result<std::string> content = fingerprint({file});
    if (!content) return content.error();
    work.files.emplace_back(file, std::vector{*content});
  }
  return work;
}

int run_shard(const ShardOptions& options, const ShardedWork& work, const ShardRun& run, const WorkControl& control,
              const CaseAnswer& answer) {
  const Result<Shard> shard = options.shard.empty() ? Result<Shard>(Shard{}) : parse_shard(options.shard);
  if (!shard) return fail(shard.error());
  Result<PartFile> part = PartFile::open(options.out, work, *shard);
  if (!part) return fail(part.error());
  Work progress(control, run.what, static_cast<int64_t>(part->cases()));
  if (const Status status = do_missing(*part, run.threads, progress, answer); !status.ok()) {
    return fail(status.error());
  }
  fmt::print("{}: shard {} is done: {} {}, {} of them found done before\n", options.out, shard->text(), part->cases(),
             run.what, part->found());
  return kDone;
}

CLI::App* add_merge(CLI::App& verb, MergeOptions& options, const std::string& cases) {
  CLI::App* merge = verb.add_subcommand(
      "merge", fmt::format("Put the parts of --shard together to what one machine would print of all {}", cases));
  merge->add_option("PART", options.parts, "The files of all shards, in any order")->required();
  merge->add_option("-o,--out", options.out, "Writes into this file, once it is whole, in place of standard output");
  return merge;
}

bool asks_merge(const CLI::App& verb) {
  const CLI::App* merge = verb.get_subcommand("merge");
  if (!merge->parsed()) return false;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() > 0)
      throw CLI::ValidationError(option->get_name(), "is not for merge: the parts know their question");
  }
  return true;
}

Result<PartSet> open_parts(const MergeOptions& options, const std::string& verb) {
  Result<PartSet> parts = PartSet::open(options.parts, verb);
  if (parts && parts->not_whole() > 0) {
    fmt::print(stderr, "forerun: {} line{} of the parts that a stopped process left half written {} passed over\n",
               parts->not_whole(), parts->not_whole() == 1 ? "" : "s", parts->not_whole() == 1 ? "was" : "were");
  }
  return parts;
}

Result<MergedOutput> MergedOutput::open(const std::string& path) {
  MergedOutput output;
  if (path.empty()) return output;
  Result<OutputFile> file = OutputFile::create(path);
  if (!file) return file.error();
  output.file_ = std::move(*file);
  return output;
}

Status MergedOutput::write(std::string_view text) {
  if (file_) return file_->write(text);
  fmt::print("{}", text);
  return {};
}

Status MergedOutput::finish() { return file_ ? file_->finish() : Status(); }

}  // namespace forerun::cli
