// forerun train, calibrate, eval and simulate: handed to the program forerun-lab.
#include "cli/command.h"
#include "cli/lab_program.h"

namespace forerun::cli {

void add_lab_verbs(CLI::App& app, Run& chosen) {
  const auto add = [&](const std::string& name, const std::string& summary) {
    CLI::App* verb = app.add_subcommand(name, summary);
    verb->prefix_command();  // what follows is the other program's affair, --help too
    verb->set_help_flag();
    verb->callback([name, verb, &chosen] {
      std::vector<std::string> words = verb->remaining();
      words.insert(words.begin(), name);
      chosen = [name, words] { return hand_to_lab("`forerun " + name + "`", words); };
    });
  };
  add("train", "Train a predictor (forerun-lab)");
  add("calibrate", "Fit the constants of a model to measurements (forerun-lab)");
  add("eval", "Accuracy of predictors, beside what the papers published (forerun-lab)");
  add("simulate", "Write iterations labelled by Forerun, to train predictors on (forerun-lab)");
}

}  // namespace forerun::cli
