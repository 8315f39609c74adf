// The program forerun-lab: what only researchers ask. `forerun train`, `forerun calibrate`, `forerun eval` and `forerun simulate` hand over to it.
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
                   "  forerun-lab calibrate                          what can be calibrated\n"
                   "  forerun-lab simulate --out simulated.bin       iterations to pre-train predictors on\n",
       .verbs = {add_train, add_calibrate, add_eval, add_simulate, add_lab_predict, add_lab_schedule, add_lab_scale}},
      argc, argv);
}
