// The verb `predict` alone, as a program that is built in a third of the time: `./run demo` shows its answer while the
// other verbs are still to be compiled.
#include "cli/program.h"

int main(int argc, char** argv) {
  using namespace forerun::cli;
  return run_program({.name = "forerun",
                      .summary = "Tells how a deep-learning training run will go before it is run.",
                      .examples = "This program has one verb; `./run build` makes build/forerun, which has all.\n",
                      .verbs = {add_predict}},
                     argc, argv);
}
