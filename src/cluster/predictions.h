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

// What is known of a predictor that was measured: `forerun eval` writes it.
struct MeasuredErrors {
  std::string source;          // which file, suite, predictor and data
  int64_t examples = 0;        // that it was judged on
  double mean = 0;             // of |predicted - measured| / measured
  std::vector<double> ratios;  // predicted / measured at equal steps from 0 to 100 % of the examples; ascending
};

// What such a predictor says of a workload.
struct MeasuredPredictor {
  MeasuredErrors errors;
  // By job, then by column of the truth: durations that it really predicts, from the configurations that jobs name. 0: it
  // does not; the true duration with an error is taken. Empty: it does for none.
  std::vector<Time> predicted;
};

// A predictor by name:
//   perfect      the true durations
//   none         one duration for all jobs on all GPU types, the mean: nothing tells them apart
//   class-mean   the mean of the job's class: what it trains where that is known, else its user and gang
//   error:MAPE   the true duration times a log-normal error of median 1 whose mean absolute value is MAPE percent, drawn
//                independently for every job and GPU type
//   limits:F     what a user asks for whose limits are never too low: the true duration times an even draw from 1 to F, up
//                to whole minutes
//   any other    `measured`: what it predicts, and else the true duration times a ratio drawn from those measured
Result<Durations> predict_durations(const Workload& workload, const std::string& predictor, uint64_t seed,
                                    const MeasuredPredictor* measured = nullptr);

// Whether predict_durations() knows it by itself.
bool is_built_in(const std::string& predictor);

// Whether the seed makes a difference.
bool is_random(const std::string& predictor);

// PredictionIntervals of the normal distribution whose exponential has this mean absolute deviation from 1.
double spread_for_error(double mean_absolute_error);

}  // namespace forerun::cluster
