// The suite driple: bursts and idles of distributed training, predicted for model families that nothing was trained on.
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/driple_suite.h"

namespace forerun::cli {
namespace {

struct DripleSuiteOptions {
  DripleEvaluation request;
  SuiteForm form;
};

Run add_driple_suite(CLI::App& app) {
  auto options = std::make_shared<DripleSuiteOptions>();
  options->request.data.problem = tell_error;
  app.add_option("--data", options->request.data.records, "Record files or folders, in place of data/resources");
  app.add_option("--weights", options->request.weights,
                 "Folders that `forerun train driple --out` wrote; without it data/weights/driple");
  app.add_option("--setting", options->request.setting, "Servers, workers and network, such as P1w2-1G");
  add_form(app, options->form);
  return [options] { return print_answer(evaluate_driple(options->request), options->form); };
}

}  // namespace

Suite driple_suite() {
  return {.name = "driple",
          .summary = "Bursts and idles of unseen model families, predicted by Driple, by the simulation and by trees",
          .add = add_driple_suite,
          .examples = {{"forerun eval --suite driple --setting P1w2-1G", "another setting than P1w2-10G"}}};
}

}  // namespace forerun::cli
