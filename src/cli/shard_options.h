// --shard I/N and --out FILE, and the verb `merge`: how verbs with many cases share them among processes and machines. A shard
// is a process of its own; whatever starts them (a shell, Slurm, Ray) needs to know no more than these options.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "base/part_file.h"
#include "base/part_set.h"

namespace forerun::cli {

struct ShardOptions {
  std::string shard;  // "I/N"; empty: all cases
  std::string out;    // the part
  [[nodiscard]] bool any() const { return !out.empty(); }
};

// `cases`: what the verb's are called: "configurations".
void add_shard_option(CLI::App& verb, std::string& shard, const std::string& cases);
// The same with --out, which is resumable also where there is one shard alone.
void add_shard_options(CLI::App& verb, ShardOptions& options, const std::string& cases);

// The options that were given and decide what is answered, by name; those that say how it is computed or printed are left out.
// Shards may run on machines with other configuration folders: what calibrates them must be named.
Error machine_not_named();

ShardedWork::Words request_words(const CLI::App& verb);
// The same as a command: words for the program.
std::vector<std::string> command_words(const CLI::App& verb);

// Which question the verb was asked. `files`: what it reads, as far as it is there.
Result<ShardedWork> sharded_work(const CLI::App& verb, size_t cases, const std::vector<std::string>& files,
                                 const std::string& about = "{}");

// Does what the shard's part is missing and says so; the exit code.
struct ShardRun {
  size_t threads = 0;
  std::string what;  // "configurations"
};
int run_shard(const ShardOptions& options, const ShardedWork& work, const ShardRun& run, const WorkControl& control,
              const CaseAnswer& answer);

struct MergeOptions {
  std::vector<std::string> parts;
  std::string out;  // empty: standard output
};
// The verb's own verb `merge`, with PART and --out. `cases` as above.
CLI::App* add_merge(CLI::App& verb, MergeOptions& options, const std::string& cases);
// A verb that has `merge` beside options of its own: whether `merge` was asked. Options given to both are a usage error.
bool asks_merge(const CLI::App& verb);

// The parts; what was passed over in them is told on standard error.
Result<PartSet> open_parts(const MergeOptions& options, const std::string& verb);

// Where the answer goes: standard output, or a file that is there once it is whole.
class MergedOutput {
 public:
  static Result<MergedOutput> open(const std::string& path);
  Status write(std::string_view text);
  Status finish();

 private:
  std::optional<OutputFile> file_;
};

}  // namespace forerun::cli
