// forerun train, calibrate and eval: handed to the program forerun-lab, which has the predictors and suites of research. It is
// another program since loading LibTorch takes longer than the answers of all other verbs.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "cli/command.h"

namespace forerun::cli {
namespace {

int hand_over(const std::string& verb, const std::vector<std::string>& arguments) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string lab = (self.parent_path() / "forerun-lab").string();
  std::vector<std::string> words = {lab, verb};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (!unknown) execv(lab.c_str(), argv.data());  // returns only where it cannot be run
  return fail({fmt::format("`forerun {}` is a verb of the program forerun-lab, which was not built", verb), lab,
               "build it: ./run build"});
}

}  // namespace

void add_lab_verbs(CLI::App& app, Run& chosen) {
  const auto add = [&](const std::string& name, const std::string& summary) {
    CLI::App* verb = app.add_subcommand(name, summary);
    verb->prefix_command();  // what follows is the other program's affair, --help too
    verb->set_help_flag();
    verb->callback([name, verb, &chosen] {
      chosen = [name, arguments = verb->remaining()] { return hand_over(name, arguments); };
    });
  };
  add("train", "Train a predictor (forerun-lab)");
  add("calibrate", "Fit the constants of a model to measurements (forerun-lab)");
  add("eval", "Accuracy of predictors, beside what the papers published (forerun-lab)");
}

}  // namespace forerun::cli
