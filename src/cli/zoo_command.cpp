// forerun zoo: the models and their parameters; forerun zoo check FILE: the zoo against recorded runs.
#include <fmt/format.h>

#include "api/catalogue.h"
#include "api/zoo_check.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "report/catalogue.h"
#include "report/zoo_check.h"

namespace forerun::cli {
namespace {

int list(const std::string& only, bool json) {
  std::vector<std::string> names;
  bool found = only.empty();
  std::string wanted = only;
  for (const zoo::NamedModel& model : zoo::models()) {
    names.push_back(model.name);
    if (model.name == only) wanted = model.family;
  }
  for (const zoo::Family& family : zoo::families()) {
    names.push_back(family.name);
    if (!wanted.empty() && family.name != wanted) continue;
    found = true;
    if (json) {
      fmt::print("{}\n", to_json(family));
    } else {
      fmt::print("{}{}", to_text(family), wanted.empty() ? "\n" : "");
    }
  }
  if (!found) return fail({fmt::format("there is no model or family '{}'", only), "", did_you_mean(only, names)});
  if (!json && wanted.empty()) {
    fmt::print("Use one with `forerun predict NAME --set parameter=value`; lists are written 3,4,6,3.\n");
  }
  return kDone;
}

int check(const std::string& file, bool json) {
  const Result<ZooCheck> result = check_zoo(file, CommandWork().control());
  if (!result) return fail(result.error());
  if (json) {
    for (const FamilyCheck& family : result->families) fmt::print("{}\n", to_json(family));
    for (const std::string& problem : result->problems) fmt::print(stderr, "forerun: not compared: {}\n", problem);
  } else {
    fmt::print("{}", to_text(*result));
  }
  if (result->families.empty())
    return fail({"holds no run that could be compared", file, "give a file of run records"});
  return result->problems.empty() ? kDone : kInputAtFault;
}

}  // namespace

void add_zoo(CLI::App& app, Run& chosen) {
  struct ZooOptions {
    std::string name;
    std::string file;
    bool json = false;
  };
  auto options = std::make_shared<ZooOptions>();
  CLI::App* verb = app.add_subcommand("zoo", "The models that can be predicted by name, and their parameters");
  verb->add_option("NAME", options->name, "Only this family or model");
  verb->add_flag("--json", options->json, "One JSON object a family on standard output");
  CLI::App* compare = verb->add_subcommand("check", "Compare the zoo with recorded runs, op by op");
  compare->add_option("FILE", options->file, "Run records with measurements (.jsonl, .gz, .zst)")->required();
  compare->add_flag("--json", options->json, "One JSON object a family on standard output");
  compare->footer(
      "An op counts as matched if the derived iteration has one of the same name, phase, types and shapes.\n"
      "Misses are listed, costliest first. Exit code 1: a record could not be read or built.");
  compare->callback([options, &chosen] { chosen = [options] { return check(options->file, options->json); }; });
  verb->callback([options, compare, &chosen] {
    if (!compare->parsed()) chosen = [options] { return list(options->name, options->json); };
  });
}

}  // namespace forerun::cli
