// The suite other-gpus: Forerun, Habitat and NeuSight side by side on GPUs that they know nothing of.
#include "cli/command_work.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"
#include "lab/eval/other_gpus_suite.h"

namespace forerun::cli {
namespace {

struct OtherGpusOptions {
  OtherGpusRequest request;
  bool peers_only = false;
  SuiteForm form;
};

Run add_other_gpus(CLI::App& app) {
  auto options = std::make_shared<OtherGpusOptions>();
  app.add_option("--data", options->request.ops, "Folder that NeuSight's op latencies were unpacked in");
  app.add_option("--labels", options->request.neusight, "Folder of its labels, in place of the data set neusight");
  app.add_option("--seed", options->request.options.seed, "Seed of what is trained on the way");
  app.add_option("--epochs", options->request.options.epochs, "Passes over the tables, fewer for a quick look")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--peers-only", options->peers_only, "Leave Forerun out, which takes longest");
  add_form(app, options->form);
  return [options] {
    options->request.forerun = !options->peers_only;
    return print_answer(evaluate_other_gpus(options->request, CommandWork().control()), options->form);
  };
}

}  // namespace

Suite other_gpus_suite() {
  return {
      .name = "other-gpus",
      .summary = "Forerun, Habitat and NeuSight side by side on GPUs that each was kept from: ops and whole models",
      .add = add_other_gpus,
      .examples = {{"forerun eval --suite other-gpus --data FOLDER", "NeuSight's op latencies are unpacked in FOLDER"},
                   {"forerun eval --suite other-gpus --data FOLDER --peers-only", "Habitat and NeuSight alone"}}};
}

}  // namespace forerun::cli
