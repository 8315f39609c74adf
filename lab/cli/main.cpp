// The program forerun-lab: what only researchers ask. `forerun train`, `forerun calibrate` and `forerun eval` hand over to it.
#include "cli/program.h"
#include "lab/cli/lab_verbs.h"

int main(int argc, char** argv) {
  using namespace forerun::cli;
  return run_program(
      {.name = "forerun-lab",
       .summary = "Trains, calibrates and evaluates the predictors of Forerun and of the papers it unites.",
       .examples = "Start with:\n"
                   "  forerun-lab eval                               the suites that predictors are judged on\n"
                   "  forerun-lab train                              what can be trained\n"
                   "  forerun-lab calibrate                          what can be calibrated\n",
       .verbs = {add_train, add_calibrate, add_eval}},
      argc, argv);
}
