// forerun eval: the accuracy of predictors on a suite (lab/cli/suites), beside what the papers published.
#include <optional>

#include "base/nearest.h"
#include "lab/cli/lab_verbs.h"
#include "lab/cli/suites/suites.h"

namespace forerun::cli {
namespace {

constexpr const char* kDefaultSuite = "h200";
constexpr const char* kSuiteOption = "--suite";

std::string eval_help() {
  return "Accuracy of predictors, beside what the papers published\n"
         "Usage: forerun eval --suite NAME [options of the suite]\n\n"
         "Suites:\n" +
         task_lines(suites()) +
         "`forerun eval --suite NAME --help` shows the options of a suite; options without --suite are those of h200.\n"
         "\n"
         "Errors are relative to what was measured: MRE = mean of |predicted - measured| / measured.\n"
         "Nothing that is judged here was trained or tuned on: splits are by model family. Families of --data that\n"
         "data/h200/split.json does not name count as test families.\n";
}

// The words of a command line without `--suite NAME`, and NAME.
struct SuiteWords {
  std::optional<std::string> suite;
  std::vector<std::string> rest;
};

Result<SuiteWords> take_suite(const std::vector<std::string>& words) {
  const std::string with_value = std::string(kSuiteOption) + "=";
  SuiteWords taken;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool apart = words[i] == kSuiteOption;
    if (!apart && !words[i].starts_with(with_value)) {
      taken.rest.push_back(words[i]);
      continue;
    }
    if (taken.suite) return Error{"two suites are named", kSuiteOption, "ask for one at a time"};
    if (apart && i + 1 == words.size()) {
      return Error{"the name of the suite is missing", kSuiteOption, "`forerun eval` lists the suites"};
    }
    taken.suite = apart ? words[++i] : words[i].substr(with_value.size());
  }
  return taken;
}

}  // namespace

Result<Run> parse_eval(const std::vector<std::string>& words) {
  const auto taken = take_suite(words);
  if (!taken) return taken.error();
  const bool help = !taken->rest.empty() && (taken->rest[0] == "--help" || taken->rest[0] == "-h");
  if (!taken->suite && (taken->rest.empty() || help)) return print_run(eval_help());
  const std::string name = taken->suite.value_or(kDefaultSuite);
  const Suite* suite = find_task(suites(), name);
  if (suite == nullptr) {
    std::vector<std::string> names;
    for (const Suite& known : suites()) names.push_back(known.name);
    return Error{"there is no suite '" + name + "'", kSuiteOption, did_you_mean(name, names)};
  }
  return parse_task(*suite, "forerun eval --suite " + suite->name, taken->rest);
}

void add_eval(CLI::App& app, Run& chosen) {
  add_task_verb(app, chosen, "eval", "Accuracy of predictors, beside what the papers published", parse_eval);
}

}  // namespace forerun::cli
