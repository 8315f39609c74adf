// The range beside a prediction: how far iteration times lie from their predictions where a family was left out.
#include <nlohmann/json.hpp>

#include "cli/command_work.h"
#include "lab/calibrate/calibrate_intervals.h"
#include "lab/cli/answer.h"
#include "lab/cli/calibrations/calibrations.h"
#include "lab/cli/measured_files.h"

namespace forerun::cli {
namespace {

struct IntervalsCall {
  std::vector<std::string> records;
  std::string out;
  int folds = 6;
  int seed = 1;
  bool json = false;
};

std::string intervals_json(const IntervalsOutcome& outcome) {
  const RatioInterval& gpu = outcome.intervals.gpu_bound;
  const RatioInterval& host = outcome.intervals.host_bound;
  return nlohmann::ordered_json{
             {"file", outcome.file},
             {"gpu_bound", {{"low", gpu.low}, {"high", gpu.high}, {"iterations", outcome.gpu_bound}}},
             {"host_bound", {{"low", host.low}, {"high", host.high}, {"iterations", outcome.host_bound}}},
             {"seconds", outcome.seconds}}
             .dump() +
         "\n";
}

std::string intervals_text(const IntervalsOutcome& outcome) {
  const RatioInterval& gpu = outcome.intervals.gpu_bound;
  const RatioInterval& host = outcome.intervals.host_bound;
  return fmt::format(
      "{}: eight of ten measured times are {} to {} of the predicted where the GPU bounds ({} iterations), {} to {} "
      "where the host does ({}); {:.0f} s\n{}",
      outcome.file, gpu.low, gpu.high, outcome.gpu_bound, host.low, host.high, outcome.host_bound, outcome.seconds,
      to_text(outcome.accuracy));
}

int calibrate_range(const IntervalsCall& call) {
  const auto files = measured_files(call.records);
  if (!files) return fail(files.error());
  IntervalsRequest request;
  request.validation.files = *files;
  request.validation.folds = call.folds;
  request.validation.growth.seed = call.seed;
  request.validation.problem = tell_problem;
  request.out = call.out;
  tell("reading measured ops and iterations; then about a minute a group and core");
  const auto outcome = calibrate_intervals(request, CommandWork().control());
  if (!outcome) return fail(outcome.error());
  fmt::print("{}", call.json ? intervals_json(*outcome) : intervals_text(*outcome));
  return kDone;
}

Run add_intervals_calibration(CLI::App& app) {
  auto call = std::make_shared<IntervalsCall>();
  app.add_option("--data", call->records, "Record files or folders, in place of data/h200");
  app.add_option("--out", call->out, "File for the ranges, in place of data/cost/intervals.json");
  app.add_option("--folds", call->folds, "Leave families out in so many groups (6); 99: each on its own")
      ->check(CLI::Range(1, 99));
  app.add_option("--seed", call->seed, "Seed of the trees");
  app.add_flag("--json", call->json, "Print one JSON object");
  return [call] { return calibrate_range(*call); };
}

}  // namespace

Calibration intervals_calibration() {
  return {.name = "intervals",
          .summary = "The range beside a prediction, from families left out in turn; needs XGBoost",
          .add = add_intervals_calibration,
          .examples = {{"forerun calibrate intervals --folds 99", "grow trees once for each family"}}};
}

}  // namespace forerun::cli
