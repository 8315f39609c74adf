// forerun train: trains a predictor (lab/cli/trainers) and keeps its weights.
#include "base/nearest.h"
#include "lab/cli/calibrations/calibrations.h"
#include "lab/cli/lab_verbs.h"
#include "lab/cli/trainers/trainers.h"
#include "lab/learn/predictors.h"

namespace forerun::cli {
namespace {

// How many letters may be wrong in a name that is taken for a slip of the pen.
constexpr int kSlip = 2;

std::string train_help() {
  std::string text =
      "Train a predictor on measured data and keep its weights\n"
      "Usage: forerun train NAME [options of the predictor]\n\n"
      "Predictors:\n" +
      task_lines(trainers());
  if (learn::predictors().empty()) text += "  (others: " + learn::make_predictor("").error().message() + ")\n";
  return text +
         "`forerun train NAME --help` shows the options of a predictor. Constants that are fitted and not learned:\n"
         "`forerun calibrate`.\n\n"
         "Examples:\n" +
         example_lines({{"forerun train hybrid", "the trees of `forerun predict`, from data/h200"},
                        {"forerun train ets --suite ets-t4 --out data/weights/ets-t4/ets", ""},
                        {"forerun train --suite ets-t4 --write-cache ets_t4.bin", "only the data, as one file"}});
}

// Without a name there is data to write, or nothing that can be meant.
Result<Run> parse_nameless(const std::vector<std::string>& words) {
  auto run = parse_task(data_cache_writer(), "forerun train", words);
  if (run) return run;
  Error error = run.error();
  error.remedy += "; the name of a predictor comes first: forerun train NAME";
  return error;
}

Result<Run> parse_unknown(const std::string& name, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  bool slip = false;
  for (const Trainer& trainer : trainers()) {
    names.push_back(trainer.name);
    slip = slip || edit_distance(name, trainer.name) <= kSlip;
  }
  // Without LibTorch it is not known which predictors there would be.
  if (learn::predictors().empty() && !slip) {
    return parse_task(learned_trainer(name, "A learned predictor", true), "forerun train " + name, words);
  }
  return Error{"there is no predictor '" + name + "'", "", did_you_mean(name, names)};
}

}  // namespace

Result<Run> parse_train(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") return print_run(train_help());
  const std::string& name = words[0];
  if (name.starts_with("-")) return parse_nameless(words);
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (const Trainer* trainer = find_task(trainers(), name)) {
    return parse_task(*trainer, "forerun train " + name, rest);
  }
  if (find_task(calibrations(), name) != nullptr) {
    return Error{"'" + name + "' is calibrated and not trained", "",
                 "ask for it with `forerun calibrate " + name + "`"};
  }
  return parse_unknown(name, rest);
}

void add_train(CLI::App& app, Run& chosen) {
  add_task_verb(app, chosen, "train", "Train a predictor; without a name: which there are", parse_train);
}

}  // namespace forerun::cli
