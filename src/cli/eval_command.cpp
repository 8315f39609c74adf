// forerun eval: the accuracy of trained predictors on the test split of a suite, beside what the papers published.
#include <fmt/format.h>

#include "api/suites.h"
#include "cli/command.h"

namespace forerun::cli {
namespace {

struct Options {
  std::string suite = "h200";
  SuiteOptions data;
  bool json = false;
};

int evaluate(const Options& given) {
  Options options = given;
  options.data.problem = [](const DataProblem& problem) {
    fmt::print(stderr, "forerun: {}\n", problem.error().message());
  };
  const auto results = evaluate_suite(options.suite, options.data);
  if (!results) return fail(results.error());
  for (const SuiteResult& result : *results) {
    fmt::print("{}{}", options.json ? to_json(result) : to_text(result), options.json ? "\n" : "");
  }
  return kDone;
}

}  // namespace

void add_eval(CLI::App& app, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("eval", "Accuracy of trained predictors, beside what the papers published");
  verb->add_option("--suite", options->suite, "ets-t4, ets-2080ti, h200 (default), or seeds: the papers' tables");
  verb->add_option("--weights", options->data.weights,
                   "Folders that `forerun train --out` wrote; without it all of data/weights/SUITE");
  verb->add_option("--traces", options->data.traces, "Folder of the ETS authors' traces");
  verb->add_option("--data", options->data.records, "Record files or folders, in place of the data folder's");
  verb->add_option("--cache", options->data.cache, "A data set that `forerun train --write-cache` wrote");
  verb->add_flag("--json", options->json, "One JSON object a suite on standard output");
  verb->footer(
      "Errors are relative to what was measured: MRE = mean of |predicted - measured| / measured.\n"
      "Nothing that is judged here was trained or tuned on: splits are by model family. Families of --data that\n"
      "data/h200/split.json does not name count as test families.\n"
      "Examples:\n"
      "  forerun eval --suite seeds                     the papers' tables, ours beside theirs\n"
      "  forerun eval --suite h200 --data more.jsonl.gz other records");
  verb->callback([options, &chosen] { chosen = [options] { return evaluate(*options); }; });
}

}  // namespace forerun::cli
