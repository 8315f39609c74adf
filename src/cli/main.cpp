// The forerun program: parses the verb and its options, prints what the library answers.
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "base/nearest.h"
#include "base/partial_files.h"
#include "cli/command.h"
#include "cli/standard_streams.h"

namespace forerun::cli {

int fail(const Error& error) {
  fmt::print(stderr, "forerun: {}\n", error.message());
  return kInputAtFault;
}

namespace {

// A usage error: what CLI11 says, with the nearest verb where a verb, or a verb's own verb, is unknown.
int usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* at = &app;
  std::string called = "forerun";
  for (int i = 1; i < argc && argv[i][0] != '-' && !at->get_subcommands({}).empty(); ++i) {
    const std::string given = argv[i];
    const CLI::App* chosen = nullptr;
    std::vector<std::string> verbs;
    for (const CLI::App* verb : at->get_subcommands({})) {
      verbs.push_back(verb->get_name());
      if (verb->get_name() == given) chosen = verb;
    }
    if (chosen == nullptr) {
      fmt::print(stderr, "{}: there is no verb '{}': {}\n", called, given, did_you_mean(given, verbs));
      return kUsage;
    }
    at = chosen;
    called += " " + given;
  }
  fmt::print(stderr, "forerun: {}; see `{} --help`\n", error.what(), called);
  return kUsage;
}

// An empty value is a shell variable that was not set: no option takes it for its default.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    option->check([](const std::string& value) {
      return value.empty() ? std::string("is empty: give a value, or leave the option out") : std::string();
    });
  }
  for (CLI::App* verb : app.get_subcommands({})) refuse_empty_values(*verb);
}

// Verbs that ask learned predictors go to the program that has them, where it was built: loading LibTorch takes longer
// than the answers of all the others.
void hand_over(int argc, char** argv) {
  if (argc < 2 || (std::string_view(argv[1]) != "train" && std::string_view(argv[1]) != "eval")) return;
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  const std::filesystem::path other = self.parent_path() / "forerun-torch";
  if (none || self == other || !std::filesystem::exists(other, none)) return;
  execv(other.c_str(), argv);  // returns only where it cannot be run: this program then says what it lacks
}

int run(int argc, char** argv) {
  CLI::App app{"Tells how a deep-learning training run will go before it is run.", "forerun"};
  app.require_subcommand(1);
  app.set_version_flag("--version", FORERUN_VERSION);
  app.footer(
      "Start with:\n"
      "  forerun predict resnet50                       iteration time and memory on an H200\n"
      "  forerun predict gpt2_small --gpu a100 --precision amp_bf16 --batch 16\n"
      "  forerun fit gpt2_small --gpu a100              the largest batch that fits\n"
      "  forerun zoo                                    the models it knows\n"
      "  forerun data summary data/h200                 what was measured\n"
      "Exit codes: 0 done, 1 the input is at fault, 2 usage, 3 does not fit in memory.");
  hand_over(argc, argv);
  Run chosen;
  add_predict(app, chosen);
  add_fit(app, chosen);
  add_sweep(app, chosen);
  add_zoo(app, chosen);
  add_devices(app, chosen);
  add_data(app, chosen);
  add_train(app, chosen);
  add_eval(app, chosen);
  add_memory(app, chosen);
  add_schedule(app, chosen);
  add_slurm(app, chosen);
  add_trace(app, chosen);
  add_replay(app, chosen);
  add_whatif(app, chosen);
  add_scale(app, chosen);
  add_monitor(app, chosen);
  refuse_empty_values(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, argc, argv);
  }
  return chosen();
}

}  // namespace
}  // namespace forerun::cli

int main(int argc, char** argv) {
  using namespace forerun::cli;
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit of its size is an error as on a full disk
  forerun::remove_partial_files_on_signals();
  try {
    return finish_standard_output(run(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("forerun: out of memory; give it a smaller model or file, or a machine with more\n", stderr);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return finish_standard_output(kInputAtFault, error.code().message().c_str());
    std::fprintf(stderr, "forerun: %s\n", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forerun: %s\n", error.what());
  }
  return finish_standard_output(kInputAtFault);
}
