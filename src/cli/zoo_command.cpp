// forerun zoo: the models and their parameters; forerun zoo check FILE: the zoo against recorded runs.
#include <fmt/format.h>

#include "api/catalogue.h"
#include "api/zoo_check.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "cli/command_work.h"
#include "cli/html_option.h"
#include "report/catalogue.h"
#include "report/zoo_check.h"

namespace forerun::cli {
namespace {

// A family, or the one that a model is of; false where there is none of that name.
bool print_family(const std::string& name, bool json) {
  std::string wanted = name;
  for (const zoo::NamedModel& model : zoo::models()) {
    if (model.name == name) wanted = model.family;
  }
  for (const zoo::Family& family : zoo::families()) {
    if (family.name != wanted) continue;
    fmt::print("{}{}", json ? to_json(family) : to_text(family), json ? "\n" : "");
    return true;
  }
  return false;
}

// A model type of config.json files; false where there is none of that name.
bool print_model_type(const std::string& name, const std::vector<zoo::Checkpoint>& checkpoints, bool json) {
  for (const zoo::Architecture& architecture : zoo::architectures()) {
    if (architecture.model_type != name) continue;
    fmt::print("{}{}", json ? to_json(architecture, checkpoints) : to_text(architecture, checkpoints),
               json ? "\n" : "");
    return true;
  }
  return false;
}

int list_one(const std::string& name, const std::vector<zoo::Checkpoint>& checkpoints, bool json) {
  if (print_family(name, json) || print_model_type(name, checkpoints, json)) return kDone;
  const auto checkpoint = zoo::find_checkpoint(name);
  if (!checkpoint) return fail(checkpoint.error());
  if (checkpoint->has_value()) {
    if (json) {
      print_model_type((*checkpoint)->model_type, checkpoints, json);
    } else {
      fmt::print("{}", to_text(**checkpoint));
    }
    return kDone;
  }
  std::vector<std::string> names = zoo::known_names();
  for (const zoo::Architecture& architecture : zoo::architectures()) names.push_back(architecture.model_type);
  return fail({fmt::format("there is no model or family '{}'", name), "", did_you_mean(name, names)});
}

int list(const std::string& only, bool json) {
  const auto checkpoints = zoo::checkpoints();
  if (!checkpoints) return fail(checkpoints.error());
  if (!only.empty()) return list_one(only, *checkpoints, json);
  for (const zoo::Family& family : zoo::families()) fmt::print("{}\n", json ? to_json(family) : to_text(family));
  if (json) {
    for (const zoo::Architecture& architecture : zoo::architectures()) {
      fmt::print("{}\n", to_json(architecture, *checkpoints));
    }
    return kDone;
  }
  fmt::print("{}\nUse one with `forerun predict NAME --set parameter=value`; lists are written 3,4,6,3.\n",
             config_models_text(*checkpoints));
  return kDone;
}

int check(const std::string& file, bool json, const HtmlOption& html) {
  const Result<ZooCheck> result = check_zoo(file, CommandWork().control());
  if (!result) return fail(result.error());
  if (html.asked()) {
    std::string page;
    for (const FamilyCheck& family : result->families) page += to_json(family) + "\n";
    if (const Status status = write_html(html, page); !status.ok()) return fail(status.error());
  }
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
    HtmlOption html;
    bool json = false;
  };
  auto options = std::make_shared<ZooOptions>();
  CLI::App* verb = app.add_subcommand("zoo", "The models that can be predicted by name, and their parameters");
  verb->add_option("NAME", options->name, "Only this family, model, model type of config.json files, or checkpoint");
  verb->add_flag("--json", options->json, "One JSON object a family on standard output");
  CLI::App* compare = verb->add_subcommand("check", "Compare the zoo with recorded runs, op by op");
  compare->add_option("FILE", options->file, "Run records with measurements (.jsonl, .gz, .zst)")->required();
  compare->add_flag("--json", options->json, "One JSON object a family on standard output");
  add_html_option(*compare, options->html);
  compare->footer(
      "An op counts as matched if the derived iteration has one of the same name, phase, types and shapes.\n"
      "Misses are listed, costliest first. Exit code 1: a record could not be read or built.");
  compare->callback(
      [options, &chosen] { chosen = [options] { return check(options->file, options->json, options->html); }; });
  verb->callback([options, compare, &chosen] {
    if (!compare->parsed()) chosen = [options] { return list(options->name, options->json); };
  });
}

}  // namespace forerun::cli
