#include "lab/calibrate/calibrate_intervals.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/data_dir.h"
#include "lab/calibrate/left_out_suite.h"

namespace forerun {
namespace {

int64_t count_bound(std::span<const LeftOutRun> runs, bool by_host) {
  return std::count_if(runs.begin(), runs.end(), [&](const LeftOutRun& run) { return run.host_bound == by_host; });
}

}  // namespace

PredictionIntervals intervals_over(std::span<const LeftOutRun> runs) {
  const auto range = [&](bool by_host) {
    std::vector<double> ratios;
    for (const LeftOutRun& run : runs) {
      if (run.host_bound == by_host && run.iteration_ms > 0) ratios.push_back(run.measured_ms / run.iteration_ms);
    }
    return range_of(std::move(ratios));
  };
  return {.gpu_bound = range(false), .host_bound = range(true)};
}

Result<IntervalsOutcome> calibrate_intervals(const IntervalsRequest& request, const WorkControl& control) {
  const auto begin = std::chrono::steady_clock::now();
  const Result<std::filesystem::path> folder = data_dir();
  if (!folder) return folder.error();
  const auto runs = cross_validate(request.validation, control);
  if (!runs) return runs.error();
  const auto known = load_prediction_intervals(*folder / kIntervalsFile);
  if (!known) return known.error();
  IntervalsOutcome outcome{.file = request.out.empty() ? (*folder / kIntervalsFile).string() : request.out,
                           .intervals = intervals_over(*runs),
                           .gpu_bound = count_bound(*runs, false),
                           .host_bound = count_bound(*runs, true)};
  auto accuracy = evaluate_left_out_runs(request.validation, *runs);
  if (!accuracy) return accuracy.error();
  outcome.accuracy = std::move(*accuracy);
  outcome.intervals.other_gpu = known->other_gpu;
  if (const Status saved = save_prediction_intervals(outcome.intervals, outcome.file); !saved.ok())
    return saved.error();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

}  // namespace forerun
