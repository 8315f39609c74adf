// The verb `predict` alone and for names of the zoo alone: a fifth of the sources. `./run demo` shows its answer while the
// other verbs are still to be compiled.
#include "cli/predict_command.h"
#include "cli/program.h"

namespace {

using namespace forerun;

Result<std::optional<FileKind>> no_file(const std::string& model) {
  if (!names_file(model)) return std::optional<FileKind>();
  return Error{"is a file, and this program predicts the models of the zoo alone", model,
               "`./run build` makes build/forerun, which reads files"};
}

int no_predictors(const cli::PredictOptions& /*options*/) {
  return cli::fail(
      {"this program has no learned predictors", "--with", "`./run build` makes build/forerun, which has"});
}

void add_predict_names(CLI::App& app, cli::Run& chosen) {
  cli::add_predict_with({.kind = no_file, .build_run = build_zoo_run, .predict_records = nullptr, .ask = no_predictors},
                        app, chosen);
}

}  // namespace

int main(int argc, char** argv) {
  return cli::run_program({.name = "forerun",
                           .summary = "Tells how a deep-learning training run will go before it is run.",
                           .examples = "This program has one verb; `./run build` makes build/forerun, which has all.\n",
                           .verbs = {add_predict_names}},
                          argc, argv);
}
