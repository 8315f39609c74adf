// The suite gpus: how times carry over to GPUs that nothing was measured on, by what NeuSight, ETS, Lambda,
// PipeDream, HKBU and LLM Foundry measured there.
#include "cli/command_work.h"
#include "lab/calibrate/calibrate_devices.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"

namespace forerun::cli {
namespace {

struct GpusOptions {
  DeviceRequest request;
  SuiteForm form;
};

Run add_gpus(CLI::App& app) {
  auto options = std::make_shared<GpusOptions>();
  app.add_option("--data", options->request.ops, "Folder that NeuSight's op latencies were unpacked in");
  app.add_option("--labels", options->request.neusight,
                 "Folder of its labels, in place of the data set neusight; GPUs that no op table has are judged by the "
                 "fit to all");
  app.add_option("--traces", options->request.ets, "Folder of the ETS authors' traces");
  add_form(app, options->form);
  return [options] {
    const auto answer = evaluate_devices(options->request, CommandWork().control());
    return print_answer(answer, options->form);
  };
}

}  // namespace

Suite gpus_suite() {
  return {.name = "gpus",
          .summary =
              "Other GPUs than the measured one, each left out of all fits: single ops by kind, whole models, how "
              "often ranges hold",
          .add = add_gpus,
          .examples = {{"forerun eval --suite gpus --data FOLDER", "NeuSight's op latencies are unpacked in FOLDER"},
                       {"forerun eval --suite gpus --data FOLDER --labels OTHER",
                        "judged on labels of further GPUs besides"}},
          .former_names = {"devices"}};
}

}  // namespace forerun::cli
