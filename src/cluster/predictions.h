// What a scheduler believes about durations: true ones, none, or true ones with the errors of a predictor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

enum class PredictorKind : uint8_t {
  perfect,        // the true durations
  none,           // one duration for all jobs on all GPU types, the mean: nothing tells them apart
  class_mean,     // the mean of the job's class: what it trains where that is known, else its user and gang
  stated_limits,  // what users stated as the longest; of jobs without, the longest that any stated
  error,   // the true duration times a log-normal error of median 1, drawn independently for every job and GPU type
  limits,  // what a user asks for whose limits are never too low: the true duration times an even draw from 1 on, up
           // to whole minutes
  error_like,  // the true duration times a ratio drawn from those measured of a predictor
  hybrid,      // what `forerun predict` says of jobs that name a model; of others as error_like
  learned,     // what a learned predictor says of jobs, all of which must name a model
};

struct Predictor {
  PredictorKind kind = PredictorKind::perfect;
  double value = 0;              // error: mean absolute error as a share; limits: the largest factor
  std::string name = "perfect";  // as it was written
  MeasuredErrors errors = {};    // error_like and hybrid

  // Whether the seed makes a difference.
  [[nodiscard]] bool is_random() const { return kind >= PredictorKind::error && kind != PredictorKind::learned; }
  // Whether it must be asked about the workload first (own_predictions in schedule_predictor.h).
  [[nodiscard]] bool is_asked() const { return kind >= PredictorKind::error_like; }
};

// "perfect", "none", "class-mean", "limits", "error:8" (percent), "limits:3"; nothing where the name is none of these.
Result<std::optional<Predictor>> parse_built_in_predictor(const std::string& text);

// What a predictor says of a workload. `own` are durations that it really predicts, by job and then by column of the
// truth; 0: it does not predict that one, and its errors are drawn (not so a learned one, which predicts all). Empty: it
// predicts none.
Durations predict_durations(const Workload& workload, const Predictor& predictor, uint64_t seed,
                            std::span<const Time> own = {});

// PredictionIntervals of the normal distribution whose exponential has this mean absolute deviation from 1.
double spread_for_error(double mean_absolute_error);

}  // namespace forerun::cluster
