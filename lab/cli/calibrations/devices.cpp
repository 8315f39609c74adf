// How times carry over to other GPUs, from op latencies that others measured there.
#include "cli/command_work.h"
#include "lab/calibrate/calibrate_devices.h"
#include "lab/cli/answer.h"
#include "lab/cli/calibrations/calibrations.h"

namespace forerun::cli {
namespace {

struct DevicesCall {
  DeviceRequest request;
  std::string out;
  bool json = false;
};

int calibrate_other_devices(const DevicesCall& call) {
  const auto outcome = calibrate_devices(call.request, call.out, CommandWork().control());
  if (!outcome) return fail(outcome.error());
  fmt::print("{}", call.json ? to_json(outcome->accuracy) + "\n" : to_text(outcome->accuracy));
  tell(outcome->file + " is written");
  return kDone;
}

Run add_devices_calibration(CLI::App& app) {
  auto call = std::make_shared<DevicesCall>();
  app.add_option("--data", call->request.ops, "Folder that NeuSight's op latencies were unpacked in");
  app.add_option("--traces", call->request.ets, "Folder of the ETS authors' traces");
  app.add_option("--out", call->out, "File for the fit, in place of data/cost/devices.json");
  app.add_flag("--json", call->json, "Print one JSON object");
  return [call] { return calibrate_other_devices(*call); };
}

}  // namespace

Calibration devices_calibration() {
  return {.name = "devices",
          .summary = "How times carry over to other GPUs, from op latencies that others measured",
          .add = add_devices_calibration,
          .examples = {{"forerun calibrate devices --data FOLDER", "NeuSight's op latencies are unpacked in FOLDER"}}};
}

}  // namespace forerun::cli
