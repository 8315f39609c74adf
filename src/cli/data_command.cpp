// forerun data: what record files hold, whether they can be used, and several of them as one.
#include <fmt/format.h>

#include "api/data.h"
#include "base/line_writer.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "report/data_check.h"
#include "report/data_export.h"
#include "report/data_noise.h"
#include "report/data_rows.h"
#include "report/data_summary.h"

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
  WorkLimits limits;
  HtmlOption html;
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
  Problems problems;
  const auto result = data_summary({options.paths, std::ref(problems)}, CommandWork(options.limits).control());
  if (!result) return fail(result.error());
  if (options.html.asked()) {
    if (const Status status = write_html(options.html, to_json(*result)); !status.ok()) return fail(status.error());
  }
  fmt::print("{}", options.json ? to_json(*result) + "\n" : to_text(*result));
  return problems.exit_code();
}

int noise(const DataOptions& options) {
  Problems problems;
  const auto result = data_noise({options.paths, std::ref(problems)}, CommandWork(options.limits).control());
  if (!result) return fail(result.error());
  fmt::print("{}", options.json ? to_json(*result) + "\n" : to_text(*result));
  return problems.exit_code();
}

int list(const DataOptions& options) {
  Problems problems;
  bool first = true;
  const auto print = [&](const RunRecord& record) {
    if (first && !options.json) fmt::print("{}\n", options.csv ? list_csv_heading() : list_heading());
    first = false;
    fmt::print("{}\n", options.json ? list_json(record) : options.csv ? list_csv(record) : list_line(record));
  };
  const Status status = data_list({options.paths, std::ref(problems)}, print,
                                  CommandWork(options.limits, CommandWork::Answer::as_it_comes).control());
  return status.ok() ? problems.exit_code() : fail(status.error());
}

int check(const DataOptions& options) {
  const auto problem = [&](const DataProblem& found) {
    fmt::print("{}\n", options.json ? finding_json(found) : finding_text(found));
  };
  const auto unreadable = [&](const Error& error) {
    fmt::print("{}\n", options.json ? unreadable_json(error) : error.message());
  };
  const auto result = data_check({options.paths, problem}, unreadable,
                                 CommandWork(options.limits, CommandWork::Answer::as_it_comes).control());
  if (!result) return fail(result.error());
  fmt::print("{}\n", options.json ? to_json(*result) : to_text(*result));
  return result->good() ? kDone : kInputAtFault;
}

int merge(const DataOptions& options) {
  Problems problems;
  const DataMergeRequest request{
      options.out,
      options.paths,
      {.compact = options.compact, .overwrite = options.force, .problem = std::ref(problems)}};
  const auto result = data_merge(request, CommandWork(options.limits).control());
  if (!result) return fail(result.error());
  fmt::print("{}\n", options.json ? to_json(*result, options.out) : to_text(*result, options.out));
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
    const Status status = export_data(*files, rows, print, std::ref(problems),
                                      CommandWork(options.limits, CommandWork::Answer::as_it_comes).control());
    return status.ok() ? problems.exit_code() : fail(status.error());
  }
  auto writer = LineWriter::create(options.out, {.overwrite = options.force});
  if (!writer) return fail(writer.error());
  const auto write = [&](std::string_view line) { return writer->write(line); };
  if (const Status status = export_data(*files, rows, write, std::ref(problems), CommandWork(options.limits).control());
      !status.ok()) {
    return fail(status.error());
  }
  if (const Status status = writer->finish(); !status.ok()) return fail(status.error());
  return problems.exit_code();
}

// A verb below `data` that takes paths.
CLI::App* add_verb(CLI::App& data, const std::string& name, const std::string& help, DataOptions& options) {
  CLI::App* verb = data.add_subcommand(name, help);
  verb->add_option("PATH", options.paths,
                   "Record files (.jsonl, .gz, .zst), or folders of them; check takes machine.json files too")
      ->required();
  add_work_limits(*verb, options.limits);
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
      "  forerun data check machine.json                    can what a calibration read be relied on?\n"
      "  forerun data merge ops.jsonl a.json b.json         ops of several machine.json files as records\n"
      "  forerun data export runs.jsonl --what ops --csv ops.csv\n"
      "docs/records.md describes the records; python/forerun measures and captures them.");

  CLI::App* verb = add_verb(*data, "summary", "Counts by family, split, precision, bound, op; what to know", *options);
  add_html_option(*verb, options->html);
  verb->add_flag("--json", options->json, "One JSON object on standard output");
  verb->footer(
      "The split of the families is read from the split.json beside the files, where there is one:\n"
      "  {\"train\": [\"resnet\"], \"test\": [\"vgg\"], \"ood\": [\"randwire\"]}");
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
      "Of a machine.json: is its card whole, is no op faster than the GPU can be, do repeats agree?\n"
      "A torn last line (its writer was stopped) and a repeated id are warnings. Exit code 1: a record is broken, or a "
      "file\n"
      "holds none.");
  answer(*verb, chosen, options, check);

  verb = data->add_subcommand("merge", "Several files as one, each id once");
  verb->add_option("OUT", options->out, "The file to write: .jsonl, .jsonl.gz or .jsonl.zst")->required();
  verb->add_option("PATH", options->paths, "Record files, or folders of them")->required();
  verb->add_flag("--compact", options->compact,
                 "Pack records (run/3), which halves them and says the same but for ids of op samples, names of\n"
                 "their kernels, and when kernels were launched");
  verb->add_flag("--force", options->force, "Overwrite OUT");
  add_work_limits(*verb, options->limits);
  verb->add_flag("--json", options->json, "What was done as one JSON object on standard output");
  verb->footer(
      "machine.json files (docs/calibrate.md), and they alone, give the records of their ops.\n"
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
