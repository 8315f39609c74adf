// forerun completions and forerun man: what an installation puts beside the program, made from its own help.
#include <fmt/format.h>

#include <filesystem>

#include "api/catalogue.h"
#include "base/output_file.h"
#include "cli/command.h"
#include "cli/completions.h"
#include "cli/man_page.h"

namespace forerun::cli {
namespace {

int list_words(const std::string& what) {
  if (what == "models") {
    for (const zoo::NamedModel& model : zoo::models()) fmt::print("{}\n", model.name);
    return kDone;
  }
  const auto cost_models = load_cost_models();
  if (!cost_models) return fail(cost_models.error());
  for (const Device& device : cost_models->devices.devices()) {
    for (const std::string& alias : device.aliases) fmt::print("{}\n", alias);
  }
  return kDone;
}

int print_completions(const CLI::App& program, const std::string& shell) {
  const auto script = completion_script(program, shell);
  if (!script) return fail(script.error());
  fmt::print("{}", *script);
  return kDone;
}

// Writes a page for the program and each verb below it into `folder`: forerun.1, forerun-predict.1, ...
Status write_pages(const CLI::App& program, const CLI::App& verb, const std::string& name, const std::string& folder) {
  if (Status status = write_whole_file(folder + "/" + name + ".1", man_page(program, verb, FORERUN_VERSION)); !status) {
    return status;
  }
  for (const CLI::App* below : verb.get_subcommands({})) {
    if (Status status = write_pages(program, *below, name + "-" + below->get_name(), folder); !status) return status;
  }
  return {};
}

int write_man(const CLI::App& program, const std::string& folder) {
  if (folder.empty()) {
    fmt::print("{}", man_page(program, program, FORERUN_VERSION));
    return kDone;
  }
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault) return fail({"the folder cannot be made: " + fault.message(), folder, "name one that can be written"});
  const Status status = write_pages(program, program, program.get_name(), folder);
  return status ? kDone : fail(status.error());
}

}  // namespace

void add_installation(CLI::App& app, Run& chosen) {
  struct Options {
    std::string shell, words, folder;
  };
  auto options = std::make_shared<Options>();
  CLI::App* completions = app.add_subcommand("completions", "Print a completion script for bash, zsh or fish");
  auto* shell = completions->add_option("SHELL", options->shell, "bash, zsh or fish");
  auto* list = completions->add_option("--list", options->words, "Print names that scripts ask for: gpus or models")
                   ->check(CLI::IsMember({"gpus", "models"}))
                   ->excludes(shell);
  completions->footer(
      "Examples:\n"
      "  forerun completions bash > ~/.local/share/bash-completion/completions/forerun\n"
      "  forerun completions fish > ~/.config/fish/completions/forerun.fish");
  completions->callback([options, shell, list, &app, &chosen] {
    if (shell->count() + list->count() == 0) throw CLI::RequiredError("SHELL");
    chosen = [options, &app] {
      return options->words.empty() ? print_completions(app, options->shell) : list_words(options->words);
    };
  });
  CLI::App* man = app.add_subcommand("man", "Print the manual page, or write those of all verbs to a folder");
  man->add_option("--out", options->folder, "Folder for forerun.1, forerun-predict.1 and the others");
  man->callback([options, &app, &chosen] { chosen = [options, &app] { return write_man(app, options->folder); }; });
}

}  // namespace forerun::cli
