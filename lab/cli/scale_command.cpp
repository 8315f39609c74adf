// forerun scale MODEL --testbed SETTING --with driple: what the learned predictor says, beside the simulation.
#include "cli/scale_command.h"

#include "lab/ask/ask_resources.h"
#include "lab/cli/lab_verbs.h"

namespace forerun::cli {

void add_lab_scale(CLI::App& app, Run& chosen) { add_scale_asking(ask_resources, app, chosen); }

}  // namespace forerun::cli
