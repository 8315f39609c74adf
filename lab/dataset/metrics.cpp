#include "lab/dataset/metrics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/statistics.h"

namespace forerun::learn {
namespace {

std::string length_key(size_t ops) {
  if (ops < 300) return "0-299";
  if (ops < 600) return "300-599";
  return ops < 900 ? "600-899" : "900+";
}

std::vector<ErrorRow> summarize_each(const std::map<std::string, std::vector<PredictedPair>>& parts) {
  std::vector<ErrorRow> rows;
  for (const auto& [key, pairs] : parts) rows.push_back({key, summarize(pairs)});
  return rows;
}

}  // namespace

std::vector<double> ratio_quantiles(std::span<const PredictedPair> pairs) {
  constexpr int kSteps = 20;
  std::vector<double> ratios;
  for (const PredictedPair& pair : pairs) ratios.push_back(pair.predicted / pair.measured);
  std::sort(ratios.begin(), ratios.end());
  std::vector<double> quantiles;
  for (int i = 0; i <= kSteps && !ratios.empty(); ++i)
    quantiles.push_back(sorted_quantile(ratios, double{1} * i / kSteps));
  return quantiles;
}

ErrorSummary summarize(std::span<const PredictedPair> pairs) {
  ErrorSummary summary;
  std::vector<double> errors;
  double squares = 0;
  for (const PredictedPair& pair : pairs) {
    if (!(pair.measured > 0)) continue;
    const double off = pair.predicted - pair.measured;
    errors.push_back(std::abs(off) / pair.measured);
    summary.bias += off / pair.measured;
    squares += off * off;
  }
  if (errors.empty()) return summary;
  const auto count = static_cast<double>(errors.size());
  std::sort(errors.begin(), errors.end());
  summary.count = static_cast<int64_t>(errors.size());
  for (const double error : errors) summary.mre += error / count;
  summary.median = sorted_quantile(errors, 0.5);
  summary.p90 = sorted_quantile(errors, 0.9);
  summary.bias /= count;
  summary.rmse = std::sqrt(squares / count);
  return summary;
}

std::string_view name_of(Target quantity) {
  switch (quantity) {
    case Target::iteration_ms: return "iteration_ms";
    case Target::gpu_busy_ms: return "gpu_busy_ms";
    case Target::peak_bytes: break;
  }
  return "peak_bytes";
}

double measured(const Targets& targets, Target quantity) {
  switch (quantity) {
    case Target::iteration_ms: return targets.iteration_ms;
    case Target::gpu_busy_ms: return targets.gpu_busy_ms;
    case Target::peak_bytes: break;
  }
  return targets.peak_bytes;
}

std::optional<double> predicted(const Prediction& prediction, Target quantity) {
  switch (quantity) {
    case Target::iteration_ms: return prediction.iteration_ms;
    case Target::gpu_busy_ms: return prediction.gpu_busy_ms;
    case Target::peak_bytes: break;
  }
  return prediction.peak_bytes;
}

bool differ(const std::vector<Evaluation>& a, const std::vector<Evaluation>& b) {
  return !std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Evaluation& one, const Evaluation& other) {
    return one.quantity == other.quantity && one.all.count == other.all.count && one.all.mre == other.all.mre;
  });
}

Evaluation evaluate(const DataSet& data, const Selection& examples, std::span<const Prediction> predictions,
                    Target quantity) {
  CHECK(examples.size() == predictions.size(), "a prediction for each example");
  std::vector<PredictedPair> all;
  std::map<std::string, std::vector<PredictedPair>> by_bound;
  std::map<std::string, std::vector<PredictedPair>> by_group;
  std::map<std::string, std::vector<PredictedPair>> by_length;
  for (size_t i = 0; i < examples.size(); ++i) {
    const Example& example = data.examples()[examples[i]];
    const std::optional<double> value = predicted(predictions[i], quantity);
    const PredictedPair pair{measured(example.targets, quantity), value.value_or(0)};
    if (!value || !(pair.measured > 0)) continue;
    all.push_back(pair);
    by_bound[std::string(name_of(example.targets.bound()))].push_back(pair);
    by_group[example.group].push_back(pair);
    by_length[length_key(example.ops.size())].push_back(pair);
  }
  return {quantity,
          summarize(all),
          summarize_each(by_bound),
          summarize_each(by_group),
          summarize_each(by_length),
          ratio_quantiles(all)};
}

}  // namespace forerun::learn
