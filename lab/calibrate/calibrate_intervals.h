// Measures how far iteration times lie from their predictions where a family was left out, and writes the range that
// `predict` gives beside its answer. The range on other GPUs, which `calibrate_devices` measures, stays as it is.
#pragma once

#include <span>
#include <string>

#include "cost/hybrid/prediction_intervals.h"
#include "lab/accuracy/evaluation.h"
#include "lab/calibrate/cross_validation.h"

namespace forerun {

struct IntervalsRequest {
  CrossValidation validation;
  std::string out;  // empty: the data folder's
};

struct IntervalsOutcome {
  std::string file;
  PredictionIntervals intervals;
  int64_t gpu_bound = 0;  // iterations, by what the prediction says bounds them
  int64_t host_bound = 0;
  SuiteResult accuracy;  // of the same runs
  double seconds = 0;
};

Result<IntervalsOutcome> calibrate_intervals(const IntervalsRequest& request, const WorkControl& control = {});

// The ranges that hold eight of ten of these runs.
PredictionIntervals intervals_over(std::span<const LeftOutRun> runs);

}  // namespace forerun
