// The suite vtrain: iterations of Megatron on up to eight A100, and on several machines of eight, which the authors of vTrain published.
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/scale_suite.h"

namespace forerun::cli {
namespace {

struct VtrainOptions {
  ScaleSuiteOptions request;
  SuiteForm form;
};

Run add_vtrain(CLI::App& app) {
  auto options = std::make_shared<VtrainOptions>();
  app.add_option("--data", options->request.rows,
                 "CSV file of iterations, in place of the data set vtrain/ground_truth_single.csv");
  app.add_option("--several-machines", options->request.several,
                 "The same of several machines, in place of vtrain/ground_truth_multi.csv, which may be missing");
  add_form(app, options->form);
  return [options] { return print_answer(evaluate_vtrain(options->request), options->form); };
}

}  // namespace

Suite vtrain_suite() {
  return {.name = "vtrain",
          .summary = "Megatron on up to eight A100, as the authors of vTrain measured it",
          .add = add_vtrain,
          .examples = {{"forerun eval --suite vtrain --data ground_truth_single.csv", "another copy of the table"}}};
}

}  // namespace forerun::cli
