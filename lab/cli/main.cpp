// The program forerun-lab: what only researchers ask. `forerun train` and `forerun eval` hand over to it.
#include "cli/program.h"
#include "lab/cli/lab_verbs.h"

int main(int argc, char** argv) {
  using namespace forerun::cli;
  return run_program(
      {.name = "forerun-lab",
       .summary = "Trains, calibrates and judges the predictors of Forerun and of the papers it unites.",
       .examples = "Start with:\n"
                   "  forerun-lab eval --suite memory                peaks of memory, with what others do beside ours\n"
                   "  forerun-lab train                              what can be trained\n",
       .verbs = {add_train, add_eval}},
      argc, argv);
}
