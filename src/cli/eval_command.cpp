// forerun eval: the accuracy of trained predictors on the test split of a suite, beside what the papers published.
#include <fmt/format.h>

#include <fstream>

#include "api/data_files.h"
#include "api/left_out_suite.h"
#include "api/memory_suite.h"
#include "api/suites.h"
#include "api/train_devices.h"
#include "base/nearest.h"
#include "cli/command.h"

namespace forerun::cli {
namespace {

struct EvalOptions {
  std::string suite = "h200";
  SuiteOptions data;
  bool leave_out = false;
  int folds = 0;
  std::string write_spread;
  bool json = false;
};

void print(const SuiteResult& result, bool json) {
  fmt::print("{}{}", json ? to_json(result) : to_text(result), json ? "\n" : "");
}

// Other GPUs are judged by op latencies and whole models that others measured, and not by records.
int judge_devices(const EvalOptions& options) {
  DeviceRequest request;
  if (!options.data.records.empty()) request.ops = options.data.records[0];
  request.ets = options.data.traces;
  request.progress = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  const auto check = check_devices(request);
  if (!check) return fail(check.error());
  fmt::print("{}", options.json ? to_json(*check) + "\n" : to_text(*check));
  return kDone;
}

// Peaks of memory have a table of their own.
int judge_memory(const EvalOptions& options) {
  MemorySuiteOptions request{.records = options.data.records, .problem = options.data.problem};
  request.progress = [](int64_t runs) {
    if (runs % 100 == 0) fmt::print(stderr, "{} runs\n", runs);
  };
  const auto accuracy = evaluate_memory(request);
  if (!accuracy) return fail(accuracy.error());
  fmt::print("{}", options.json ? to_json(*accuracy) + "\n" : to_text(*accuracy));
  if (options.write_spread.empty()) return kDone;
  std::ofstream file(options.write_spread);
  file << to_json(accuracy->spread, accuracy->data);
  file.close();
  if (file.fail()) return fail({"cannot be written", options.write_spread, "name a file in a folder that is there"});
  return kDone;
}

int leave_out(const EvalOptions& options) {
  if (options.suite != "h200") {
    return fail({"families are left out of the suite h200 only", "--leave-one-out", "leave out --suite"});
  }
  const auto paths = suite_records(options.data);
  if (!paths) return fail(paths.error());
  const auto files = record_files(*paths);
  if (!files) return fail(files.error());
  CrossValidation request;
  request.files = *files;
  request.folds = options.folds;
  request.problem = options.data.problem;
  request.progress = [](const std::string& what, size_t done, size_t of) {
    fmt::print(stderr, "{:2} of {}: {}\n", done, of, what);
  };
  const auto result = evaluate_left_out(request);
  if (!result) return fail(result.error());
  print(*result, options.json);
  return kDone;
}

int evaluate(const EvalOptions& given) {
  EvalOptions options = given;
  options.data.problem = [](const DataProblem& problem) {
    fmt::print(stderr, "forerun: {}\n", problem.error().message());
  };
  if (options.leave_out) return leave_out(options);
  if (options.suite == "devices") return judge_devices(options);
  if (options.suite == "memory") return judge_memory(options);
  std::vector<std::string> names = suite_names();
  names.insert(names.end(), {"devices", "memory"});
  if (std::find(names.begin(), names.end(), options.suite) == names.end()) {
    return fail({"there is no suite '" + options.suite + "'", "--suite", did_you_mean(options.suite, names)});
  }
  const auto results = evaluate_suite(options.suite, options.data);
  if (!results) return fail(results.error());
  for (const SuiteResult& result : *results) print(result, options.json);
  return kDone;
}

}  // namespace

void add_eval(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* verb = app.add_subcommand("eval", "Accuracy of trained predictors, beside what the papers published");
  verb->add_option("--suite", options->suite,
                   "ets-t4, ets-2080ti, h200 (default), devices, memory, or seeds: the papers' tables");
  verb->add_option("--weights", options->data.weights,
                   "Folders that `forerun train --out` wrote; without it all of data/weights/SUITE");
  verb->add_option("--traces", options->data.traces, "Folder of the ETS authors' traces");
  verb->add_option("--data", options->data.records, "Record files or folders, in place of the data folder's");
  verb->add_option("--cache", options->data.cache, "A data set that `forerun train --write-cache` wrote");
  verb->add_flag("--leave-one-out", options->leave_out,
                 "h200: judge `forerun predict` on the training families, each predicted without it");
  verb->add_option("--folds", options->folds, "--leave-one-out: leave families out in so many groups, which is faster");
  verb->add_option("--write-spread", options->write_spread,
                   "memory: write the ranges that predictions show (data/memory/spread.json)");
  verb->add_flag("--json", options->json, "One JSON object a suite on standard output");
  verb->footer(
      "Errors are relative to what was measured: MRE = mean of |predicted - measured| / measured.\n"
      "Nothing that is judged here was trained or tuned on: splits are by model family. Families of --data that\n"
      "data/h200/split.json does not name count as test families.\n"
      "Examples:\n"
      "  forerun eval --suite seeds                     the papers' tables, ours beside theirs\n"
      "  forerun eval --leave-one-out --folds 6         the training families, each left out of the training\n"
      "  forerun eval --suite memory                    peaks of memory, with what others do beside ours\n"
      "  forerun eval --suite devices --data FOLDER     other GPUs, by NeuSight's op latencies unpacked in FOLDER\n"
      "  forerun eval --suite h200 --data more.jsonl.gz other records");
  verb->callback([options, &chosen] { chosen = [options] { return evaluate(*options); }; });
}

}  // namespace forerun::cli
