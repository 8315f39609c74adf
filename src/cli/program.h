// What the programs forerun and forerun-lab share: one verb and its options in, an exit code out.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace forerun::cli {

struct Program {
  std::string name;  // as users call it
  std::string summary;
  std::string examples;                          // below the verbs of --help
  std::vector<void (*)(CLI::App&, Run&)> verbs;  // in the order of --help
};

// The whole of main: parses, runs the chosen verb, writes out what it printed. Faults that no verb expected (no memory, a
// full disk) end with a word on standard error and exit code 1.
int run_program(const Program& program, int argc, char** argv);

// Makes the options of `app` and of its verbs refuse an empty value: it is a shell variable that was not set, and no option
// takes it for its default. And, where numbers have a range, those that are none: ranges let "nan" pass.
void refuse_empty_values(CLI::App& app);

}  // namespace forerun::cli
