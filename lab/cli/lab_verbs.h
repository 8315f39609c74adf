// The verbs of forerun-lab: one file each; the list is in main.cpp.
#pragma once

#include "cli/command.h"

namespace forerun::cli {

void add_train(CLI::App& app, Run& chosen);
void add_eval(CLI::App& app, Run& chosen);

}  // namespace forerun::cli
