// forerun data: what record files hold, whether they can be used, and several of them as one.
#include <fmt/format.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/line_writer.h"
#include "cli/command.h"
#include "records/data_check.h"
#include "records/data_files.h"
#include "records/data_merge.h"
#include "records/data_noise.h"
#include "records/data_summary.h"
#include "report/data_export.h"
#include "report/data_noise.h"
#include "report/data_rows.h"
#include "report/data_summary.h"
#include "report/table.h"

namespace forerun::cli {
namespace {

struct DataOptions {
  std::vector<std::string> paths;
  std::string out;
  std::string what = "runs";
  bool json = false;
  bool csv = false;
  bool force = false;
  bool compact = false;
};

// Tells about records on standard error, and remembers whether any was broken.
class Problems {
 public:
  void operator()(const DataProblem& problem) {
    broken_ = broken_ || problem.kind == DataProblem::Kind::broken;
    fmt::print(stderr, "forerun: {}\n", problem.error().message());
  }
  [[nodiscard]] int exit_code() const { return broken_ ? kInputAtFault : kDone; }

 private:
  bool broken_ = false;
};

int summary(const DataOptions& options) {
  const auto files = record_files(options.paths);
  if (!files) return fail(files.error());
  Problems problems;
  const auto result = summarize_data(*files, std::ref(problems));
  if (!result) return fail(result.error());
  if (result->families.empty() && result->samples == 0) return fail(nothing_in(*files, "records that can be used"));
  fmt::print("{}", options.json ? to_json(*result) + "\n" : to_text(*result));
  return problems.exit_code();
}

int noise(const DataOptions& options) {
  const auto files = record_files(options.paths);
  if (!files) return fail(files.error());
  Problems problems;
  const auto result = noise_of_data(*files, std::ref(problems));
  if (!result) return fail(result.error());
  if (result->configurations == 0) return fail(nothing_in(*files, "measured iteration records"));
  fmt::print("{}", options.json ? to_json(*result) + "\n" : to_text(*result));
  return problems.exit_code();
}

int list(const DataOptions& options) {
  const auto files = record_files(options.paths);
  if (!files) return fail(files.error());
  Problems problems;
  bool first = true;
  const auto print = [&](const RunRecord& record, const DataPlace& /*place*/) {
    if (first && !options.json) fmt::print("{}\n", options.csv ? list_csv_heading() : list_heading());
    first = false;
    fmt::print("{}\n", options.json ? list_json(record) : options.csv ? list_csv(record) : list_line(record));
  };
  const Status status =
      scan_files(*files, Fields::description, {.run = print, .sample = {}, .problem = std::ref(problems)});
  if (!status.ok()) return fail(status.error());
  if (first) return fail(nothing_in(*files, "iteration records"));
  return problems.exit_code();
}

std::string_view kind_text(DataProblem::Kind kind) {
  switch (kind) {
    case DataProblem::Kind::broken: return "broken";
    case DataProblem::Kind::torn: return "torn";
    case DataProblem::Kind::warning: break;
  }
  return "warning";
}

// A line of `data check --json`, begun: findings by kind, and last the result.
JsonWriter begin_finding(std::string_view kind) {
  JsonWriter json;
  json.begin_object().field("schema", "forerun.data.check/1").field("kind", kind);
  return json;
}

void print_problem(const DataProblem& problem, bool json) {
  if (!json) {
    const bool broken = problem.kind == DataProblem::Kind::broken;
    fmt::print("{}{}\n", broken ? "" : "warning: ", problem.error().message());
    return;
  }
  fmt::print("{}\n", begin_finding(kind_text(problem.kind))
                         .field("file", problem.file)
                         .field("record", problem.line)
                         .field("id", problem.id)
                         .field("what", problem.what)
                         .end_object()
                         .take());
}

int check(const DataOptions& options) {
  const auto files = record_files(options.paths);
  if (!files) return fail(files.error());
  const DataCheck result = check_data(
      *files, [&](const DataProblem& problem) { print_problem(problem, options.json); },
      [&](const Error& error) {
        if (options.json) {
          fmt::print("{}\n",
                     begin_finding("file").field("file", error.where).field("what", error.what).end_object().take());
        } else {
          fmt::print("{}\n", error.message());
        }
      });
  if (options.json) {
    fmt::print("{}\n", begin_finding("result")
                           .field("files", result.files)
                           .field("runs", result.runs)
                           .field("samples", result.samples)
                           .field("broken", result.broken)
                           .field("torn", result.torn)
                           .field("warnings", result.warnings)
                           .field("unreadable", result.unreadable)
                           .field("empty", result.empty)
                           .end_object()
                           .take());
  } else {
    fmt::print("{} iteration records and {} op samples are good, {} records are broken", grouped(result.runs),
               grouped(result.samples), result.broken == 0 ? "no" : grouped(result.broken));
    if (result.torn > 0) fmt::print(", {} torn last lines were passed over", grouped(result.torn));
    if (result.unreadable > 0) fmt::print(", {} files could not be read to their end", grouped(result.unreadable));
    if (result.empty > 0) fmt::print(", {} files hold no records", grouped(result.empty));
    fmt::print("\n");
  }
  return result.good() ? kDone : kInputAtFault;
}

int merge(const DataOptions& options) {
  const auto files = record_files(options.paths);
  if (!files) return fail(files.error());
  Problems problems;
  MergeOptions merge{.compact = options.compact, .overwrite = options.force, .problem = std::ref(problems)};
  const bool progress = isatty(fileno(stderr)) != 0;
  if (progress) {
    merge.progress = [](int64_t written, int64_t of) {
      if (written % 16 == 0 || written == of) fmt::print(stderr, "\r{} of {} records", written, of);
    };
  }
  const auto result = merge_data(options.out, *files, merge);
  if (progress) fmt::print(stderr, "\r");
  if (!result) return fail(result.error());
  if (options.json) {
    JsonWriter json;
    json.begin_object()
        .field("schema", "forerun.data.merge/1")
        .field("out", options.out)
        .field("runs", result->runs)
        .field("samples", result->samples)
        .field("repeats", result->repeats)
        .field("replaced", result->replaced)
        .field("compacted", result->compacted)
        .field("torn", result->torn)
        .field("broken", result->broken);
    fmt::print("{}\n", json.end_object().take());
  } else {
    fmt::print("{}: {} iteration records and {} op samples", options.out, grouped(result->runs),
               grouped(result->samples));
    if (result->repeats > 0) fmt::print("; {} repeated ids were left out", grouped(result->repeats));
    if (result->replaced > 0) fmt::print(", {} failures among them gave way to a success", grouped(result->replaced));
    if (result->compacted > 0) fmt::print("; {} records were packed", grouped(result->compacted));
    if (result->broken > 0) fmt::print("; {} broken records are named above", grouped(result->broken));
    fmt::print("\n");
  }
  return problems.exit_code();
}

int export_rows(const DataOptions& options) {
  const auto files = record_files(options.paths);
  if (!files) return fail(files.error());
  const ExportRows rows = options.what == "ops"       ? ExportRows::ops
                          : options.what == "samples" ? ExportRows::samples
                                                      : ExportRows::runs;
  Problems problems;
  if (options.out == "-") {
    const auto print = [](std::string_view line) {
      fmt::print("{}\n", line);
      return Status();
    };
    const Status status = export_data(*files, rows, print, std::ref(problems));
    return status.ok() ? problems.exit_code() : fail(status.error());
  }
  auto writer = LineWriter::create(options.out, {.overwrite = options.force});
  if (!writer) return fail(writer.error());
  const auto write = [&](std::string_view line) { return writer->write(line); };
  if (const Status status = export_data(*files, rows, write, std::ref(problems)); !status.ok()) {
    return fail(status.error());
  }
  if (const Status status = writer->finish(); !status.ok()) return fail(status.error());
  return problems.exit_code();
}

// A verb below `data` that takes paths.
CLI::App* add_verb(CLI::App& data, const std::string& name, const std::string& help, DataOptions& options) {
  CLI::App* verb = data.add_subcommand(name, help);
  verb->add_option("PATH", options.paths, "Record files (.jsonl, .gz, .zst), or folders of them")->required();
  return verb;
}

template <class Answer>
void answer(CLI::App& verb, Run& chosen, const std::shared_ptr<DataOptions>& options, Answer function) {
  verb.callback([options, &chosen, function] { chosen = [options, function] { return function(*options); }; });
}

}  // namespace

void add_data(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<DataOptions>();
  CLI::App* data =
      app.add_subcommand("data", "Files of measured runs and ops: summary, noise, list, check, merge, export");
  data->require_subcommand(1);
  data->footer(
      "Examples:\n"
      "  forerun data summary data/h200                     counts by family, precision, bound; duplicates\n"
      "  forerun data noise data/h200                       how far repeated measurements lie apart\n"
      "  forerun data check runs.jsonl                      is every record usable? exit 1 if one is not\n"
      "  forerun data list runs.jsonl.zst --csv             one line a record\n"
      "  forerun data merge all.jsonl.zst shards/ --compact several files as one, without repeats\n"
      "  forerun data export runs.jsonl --what ops --csv ops.csv\n"
      "docs/records.md describes the records; python/forerun measures and captures them.");

  CLI::App* verb = add_verb(*data, "summary", "Counts by family, split, precision, bound, op; what to know", *options);
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->footer(
      "The split of the families is read from the split.json beside the files, where there is one:\n"
      "  {\"train\": [\"resnet\"], \"test\": [\"vgg\"], \"apart\": [\"randwire\"]}");
  answer(*verb, chosen, options, summary);

  verb = add_verb(*data, "noise", "How far repeated measurements of a configuration lie apart", *options);
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->footer("No predictor can do better than this. Measure again with: python -m forerun.collect --plan RECORDS");
  answer(*verb, chosen, options, noise);

  verb = add_verb(*data, "list", "One line an iteration record", *options);
  auto* json = verb->add_flag("--json", options->json, "One JSON object a record");
  verb->add_flag("--csv", options->csv, "One CSV row a record")->excludes(json);
  answer(*verb, chosen, options, list);

  verb = add_verb(*data, "check", "Whether every record can be used; what is wrong, and where", *options);
  verb->add_flag("--json", options->json, "One JSON object a finding, and one with the result");
  verb->footer(
      "Decodes all there is, verifies graphs, and looks at times, sizes, kernels and the allocator's events.\n"
      "A torn last line (its writer was stopped) and a repeated id are warnings. Exit code 1: a record is broken, or a "
      "file\n"
      "holds none.");
  answer(*verb, chosen, options, check);

  verb = data->add_subcommand("merge", "Several files as one, each id once");
  verb->add_option("OUT", options->out, "The file to write: .jsonl, .jsonl.gz or .jsonl.zst")->required();
  verb->add_option("PATH", options->paths, "Record files, or folders of them")->required();
  verb->add_flag("--compact", options->compact,
                 "Pack records (run/3), which halves them and says the same but for ids of op samples and\n"
                 "when kernels were launched");
  verb->add_flag("--force", options->force, "Overwrite OUT");
  verb->add_flag("--json", options->json, "What was done as one JSON object on standard output");
  verb->footer(
      "Of records with one id the first is kept, or the first that succeeded where others ran out of memory or "
      "failed.\n"
      "Broken records are named and left out: exit code 1, and the others are merged all the same.\n"
      "OUT is written under another name and renamed when whole. A .zst file takes some minutes: it is packed "
      "tightly.");
  answer(*verb, chosen, options, merge);

  verb = add_verb(*data, "export", "A CSV table of iteration records, of their ops, or of op samples", *options);
  verb->add_option("--csv", options->out, "The file to write (.csv, .csv.gz, .csv.zst), or - for standard output")
      ->required();
  verb->add_option("--what", options->what, "runs (default), ops or samples")
      ->check(CLI::IsMember({"runs", "ops", "samples"}));
  verb->add_flag("--force", options->force, "Overwrite the file");
  answer(*verb, chosen, options, export_rows);
}

}  // namespace forerun::cli
