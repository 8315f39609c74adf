// Errors of predictions, as the papers count them: relative to what was measured, and in absolute units.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lab/dataset/dataset.h"
#include "lab/dataset/predictor.h"

namespace forerun::learn {

struct ErrorSummary {
  int64_t count = 0;
  double mre = 0;     // mean of |predicted - measured| / measured
  double median = 0;  // of the same
  double p90 = 0;     // of the same, interpolated between neighbours
  double bias = 0;    // mean of (predicted - measured) / measured
  double rmse = 0;    // root of the mean squared difference, in the unit of the values
};

// A measured value and what was predicted for it. Pairs whose measured value is not positive are left out.
struct PredictedPair {
  double measured = 0;
  double predicted = 0;
};
ErrorSummary summarize(std::span<const PredictedPair> pairs);
// Predicted / measured at 0, 5, ... 100 % of the pairs.
std::vector<double> ratio_quantiles(std::span<const PredictedPair> pairs);

// What is predicted of an iteration.
enum class Target : uint8_t { iteration_ms, gpu_busy_ms, peak_bytes };
std::string_view name_of(Target quantity);
double measured(const Targets& targets, Target quantity);                        // 0: not measured
std::optional<double> predicted(const Prediction& prediction, Target quantity);  // nothing: not predicted

// One line of an evaluation: the errors of all examples with one key.
struct ErrorRow {
  std::string key;
  ErrorSummary errors;
};

// The errors of one predictor for one quantity, in all and by what the examples are.
struct Evaluation {
  Target quantity = Target::iteration_ms;
  ErrorSummary all;
  std::vector<ErrorRow> by_bound;   // gpu, host
  std::vector<ErrorRow> by_group;   // families in alphabetical order
  std::vector<ErrorRow> by_length;  // number of ops: 0-299, 300-599, 600-899, 900 and more
  std::vector<double> ratios;       // predicted / measured at 0, 5, ... 100 % of the examples: how errors are spread
};

// Whether any of the errors is another.
bool differ(const std::vector<Evaluation>& a, const std::vector<Evaluation>& b);

// `predictions` stand in the order of `examples`. Examples without that measurement, or predictions without that value,
// are left out.
Evaluation evaluate(const DataSet& data, const Selection& examples, std::span<const Prediction> predictions,
                    Target quantity);

}  // namespace forerun::learn
