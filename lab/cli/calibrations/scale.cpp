// What share of an A100 machine's peak training on several GPUs reaches, from iterations that the authors of vTrain published.
#include "lab/cli/answer.h"
#include "lab/cli/calibrations/calibrations.h"
#include "lab/eval/scale_suite.h"

namespace forerun::cli {
namespace {

struct ScaleCall {
  ScaleSuiteOptions request;
  std::string out;
  bool json = false;
};

int calibrate_many_gpus(const ScaleCall& call) {
  const auto outcome = calibrate_scale(call.request, call.out);
  if (!outcome) return fail(outcome.error());
  if (call.json) {
    fmt::print("{}\n", to_json(outcome->accuracy));
    return kDone;
  }
  fmt::print("{}: fitted to {} iterations on two GPUs: {:.1f} % by the formulas, {:.1f} % with factors of shapes\n{}",
             outcome->file, outcome->rows, 100 * outcome->formulas_error, 100 * outcome->error,
             to_text(outcome->accuracy));
  return kDone;
}

Run add_scale_calibration(CLI::App& app) {
  auto call = std::make_shared<ScaleCall>();
  app.add_option("--data", call->request.rows,
                 "CSV file of iterations, in place of the data set vtrain/ground_truth_single.csv");
  app.add_option("--out", call->out, "File for the constants, in place of data/scale/a100_megatron.json");
  app.add_flag("--json", call->json, "Print one JSON object");
  return [call] { return calibrate_many_gpus(*call); };
}

}  // namespace

Calibration scale_calibration() {
  return {.name = "scale",
          .summary = "What share of an A100 machine's peak training on several GPUs reaches",
          .add = add_scale_calibration,
          .examples = {{"forerun calibrate scale --out a100.json", ""}}};
}

}  // namespace forerun::cli
