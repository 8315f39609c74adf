// What a scheduler believes about durations: true ones, none, or true ones with the errors of a predictor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/job.h"

namespace forerun::cluster {

struct PredictorEntry {
  const char* name;
  const char* description;
};
const std::vector<PredictorEntry>& predictors();

// A predictor by name:
//   perfect      the true durations
//   none         one duration for all jobs on all GPU types, the mean: nothing tells them apart
//   class-mean   the mean of the job's class: what it trains where that is known, else its user and gang
//   error:MAPE   the true duration times a log-normal error of median 1 whose mean absolute value is MAPE percent, drawn
//                independently for every job and GPU type
//   ets, dnnperf error: with the mean error that was published for them
Result<Durations> predict_durations(const Workload& workload, const std::string& predictor, uint64_t seed);

// Whether the seed makes a difference.
bool is_random(const std::string& predictor);

// Spread of the normal distribution whose exponential has this mean absolute deviation from 1.
double spread_for_error(double mean_absolute_error);

}  // namespace forerun::cluster
