// forerun calibrate: fits the constants of a model (lab/cli/calibrations) to measurements and writes them.
#include "base/nearest.h"
#include "lab/cli/calibrations/calibrations.h"
#include "lab/cli/lab_verbs.h"
#include "lab/cli/trainers/trainers.h"

namespace forerun::cli {
namespace {

std::string calibrate_help() {
  return "Fit the constants of a model to measurements, and write them where `forerun` reads them\n"
         "Usage: forerun calibrate NAME [options of the model]\n\n"
         "Models:\n" +
         task_lines(calibrations()) +
         "`forerun calibrate NAME --help` shows the options of a model. What is learned and not fitted: `forerun "
         "train`.\n";
}

}  // namespace

Result<Run> parse_calibrate(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") return print_run(calibrate_help());
  const std::string& name = words[0];
  if (const Calibration* calibration = find_task(calibrations(), name)) {
    return parse_task(*calibration, "forerun calibrate " + calibration->name, {words.begin() + 1, words.end()});
  }
  if (name.starts_with("-")) {
    return Error{"the name of a model comes first", "", "forerun calibrate NAME; without a name it lists the models"};
  }
  if (find_task(trainers(), name) != nullptr) {
    return Error{"'" + name + "' is trained and not calibrated", "", "ask for it with `forerun train " + name + "`"};
  }
  std::vector<std::string> names;
  for (const Calibration& known : calibrations()) names.push_back(known.name);
  return Error{"there is no model '" + name + "' to calibrate", "", did_you_mean(name, names)};
}

void add_calibrate(CLI::App& app, Run& chosen) {
  add_task_verb(app, chosen, "calibrate",
                "Fit the constants of a model to measurements; without a name: which there are", parse_calibrate);
}

}  // namespace forerun::cli
