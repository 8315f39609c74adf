// What the hosts of forerun.testbed cost, for its simulation: found by simulating measured workloads.
#include "lab/cli/answer.h"
#include "lab/cli/calibrations/calibrations.h"
#include "lab/eval/testbed_suite.h"

namespace forerun::cli {
namespace {

int calibrate_hosts(const TestbedRequest& request) {
  const auto cost_models = load_cost_models();
  if (!cost_models) return fail(cost_models.error());
  const auto outcome = calibrate_testbed(request, *cost_models);
  if (!outcome) return fail(outcome.error());
  fmt::print("{}: fitted to {} workloads, mean error of the twelve numbers {:.1f} %\n", outcome->file,
             outcome->workloads, 100 * outcome->error);
  return kDone;
}

Run add_testbed_calibration(CLI::App& app) {
  auto request = std::make_shared<TestbedRequest>();
  request->bad_record = tell_error;
  request->progress = [](double error) { tell(fmt::format("mean error {:.2f} %", 100 * error)); };
  app.add_option("--data", request->records, "Record files or folders, in place of data/resources");
  app.add_option("--out", request->out, "File for the rates, in place of data/scale/testbed.json");
  return [request] { return calibrate_hosts(*request); };
}

}  // namespace

Calibration testbed_calibration() {
  return {.name = "testbed",
          .summary = "What the hosts of forerun.testbed cost, for its simulation",
          .add = add_testbed_calibration,
          .examples = {{"forerun calibrate testbed --out rates.json", "a minute or two"}}};
}

}  // namespace forerun::cli
