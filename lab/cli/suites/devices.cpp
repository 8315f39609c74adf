// The suite devices: how times carry over to GPUs that nothing was measured on, by what NeuSight, ETS and Lambda measured there.
#include "cli/command_work.h"
#include "lab/calibrate/calibrate_devices.h"
#include "lab/cli/answer.h"
#include "lab/cli/suites/suites.h"

namespace forerun::cli {
namespace {

struct DevicesSuiteOptions {
  DeviceRequest request;
  bool json = false;
};

Run add_devices_suite(CLI::App& app) {
  auto options = std::make_shared<DevicesSuiteOptions>();
  app.add_option("--data", options->request.ops, "Folder that NeuSight's op latencies were unpacked in");
  app.add_option("--traces", options->request.ets, "Folder of the ETS authors' traces");
  app.add_flag("--json", options->json, "Print one JSON object");
  return [options] {
    const auto answer = evaluate_devices(options->request, CommandWork().control());
    return print_answer(answer, options->json);
  };
}

}  // namespace

Suite devices_suite() {
  return {
      .name = "devices",
      .summary = "Other GPUs than the measured one: single ops and whole models, each GPU left out of the fit",
      .add = add_devices_suite,
      .examples = {{"forerun eval --suite devices --data FOLDER", "NeuSight's op latencies are unpacked in FOLDER"}}};
}

}  // namespace forerun::cli
