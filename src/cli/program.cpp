#include "cli/program.h"

#include <fmt/core.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "base/nearest.h"
#include "base/options_text.h"
#include "base/partial_files.h"
#include "cli/help_format.h"
#include "cli/standard_streams.h"

namespace forerun::cli {

int fail(const Error& error) {
  fmt::print(stderr, "forerun: {}\n", error.message());
  return error.kind == ErrorKind::stopped ? kStopped : kInputAtFault;
}

void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    option->check([](const std::string& value) {
      return value.empty() ? std::string("is empty: give a value, or leave the option out") : std::string();
    });
    if (option->get_type_name().find("FLOAT in [") == std::string::npos) continue;
    option->check(
        [](const std::string& value) { return number_in(value) ? std::string() : "'" + value + "' is no number"; });
  }
  for (CLI::App* verb : app.get_subcommands({})) refuse_empty_values(*verb);
}

namespace {

constexpr int kMostTypos = 3;

// The first option of a command line that the verb does not have, with the nearest that it has; empty where it has them all.
std::string unknown_option(const CLI::App& verb, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const std::string given = text.substr(0, text.find('='));
    if (!given.starts_with("--") || given == "--" || verb.get_option_no_throw(given) != nullptr) continue;
    std::vector<std::string> known;
    for (const CLI::Option* option : verb.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    // One that is far off would only distract.
    std::erase_if(known, [&](const std::string& name) {
      return !name.starts_with(given) && edit_distance(given, name) > kMostTypos;
    });
    const std::string meant = did_you_mean(given, known);
    return fmt::format("there is no option {} here;{}", given, meant.empty() ? "" : " " + meant);
  }
  return "";
}

// The first option that goes without a value too, given an empty one: CLI11 takes `--compile=` for `--compile`. Empty: there is none.
std::string emptied_option(const CLI::App& verb, int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view text = argv[i];
    if (!text.starts_with("--") || !text.ends_with('=')) continue;
    std::string name(text.substr(0, text.size() - 1));
    const CLI::Option* option = verb.get_option_no_throw(name);
    const bool optional =
        option != nullptr && option->get_items_expected_min() == 0 && option->get_items_expected_max() > 0;
    if (optional) return name;
  }
  return "";
}

// A usage error: what CLI11 says, with the nearest verb where a verb, or a verb's own verb, is unknown.
int usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* at = &app;
  std::string called = app.get_name();
  for (int i = 1; i < argc && argv[i][0] != '-' && !at->get_subcommands({}).empty(); ++i) {
    const std::string given = argv[i];
    const CLI::App* chosen = nullptr;
    std::vector<std::string> verbs;
    for (const CLI::App* verb : at->get_subcommands({})) {
      verbs.push_back(verb->get_name());
      if (verb->get_name() == given) chosen = verb;
    }
    if (chosen == nullptr && at->get_require_subcommand_min() == 0) break;  // what stands there is no verb's name
    if (chosen == nullptr) {
      fmt::print(stderr, "{}: there is no verb '{}': {}\n", called, given, did_you_mean(given, verbs));
      return kUsage;
    }
    at = chosen;
    called += " " + given;
  }
  const std::string unknown =
      dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr ? "" : unknown_option(*at, argc, argv);
  if (unknown.empty()) {
    fmt::print(stderr, "forerun: {}; see `{} --help`\n", error.what(), called);
  } else {
    fmt::print(stderr, "forerun: {} `{} --help` lists all\n", unknown, called);
  }
  return kUsage;
}

int parse_and_run(const Program& program, int argc, char** argv) {
  CLI::App app{program.summary, program.name};
  app.formatter(std::make_shared<HelpFormat>());
  app.require_subcommand(1);
  app.set_version_flag("--version", FORERUN_VERSION);
  app.footer(program.examples +
             "Exit codes: 0 done, 1 the input is at fault, 2 usage, 3 does not fit in memory,\n"
             "130 stopped (Ctrl-C).");
  Run chosen;
  const auto is_asked = [&](const CLI::App* verb) { return argc > 1 && verb->get_name() == argv[1]; };
  for (const auto& add_verb : program.verbs) {
    add_verb(app, chosen);
    // Verbs behind the one that is asked for say nothing: their options take a while to make.
    if (!app.get_subcommands(is_asked).empty()) break;
  }
  refuse_empty_values(app);
  for (const CLI::App* verb : app.get_subcommands(is_asked)) {
    const std::string emptied = emptied_option(*verb, argc, argv);
    if (emptied.empty()) continue;
    fmt::print(stderr, "forerun: {} is empty: give a value, or none without `=`; see `{} {} --help`\n", emptied,
               program.name, verb->get_name());
    return kUsage;
  }
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

int run_program(const Program& program, int argc, char** argv) {
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit of its size is an error as on a full disk
  remove_partial_files_on_signals();
  try {
    return finish_standard_output(parse_and_run(program, argc, argv));
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

}  // namespace forerun::cli
