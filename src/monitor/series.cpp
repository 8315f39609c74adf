#include "monitor/series.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/statistics.h"

namespace forerun::monitor {
namespace {

constexpr double kTwoLevels = 0.5;  // idles lie under this share of bursts, or there are no two levels

struct Runs {
  double total = 0;  // steps
  size_t count = 0;

  [[nodiscard]] double mean() const { return count > 0 ? total / static_cast<double>(count) : 0; }
  void add(size_t steps) {
    total += static_cast<double>(steps);
    ++count;
  }
};

// Which steps are bursts: above the threshold, or in a short gap between two that are.
std::vector<bool> bursts_of(const std::vector<double>& values, double threshold, double least_gap) {
  std::vector<bool> burst(values.size());
  size_t gap = 0;
  bool begun = false;
  for (size_t i = 0; i < values.size(); ++i) {
    burst[i] = values[i] > threshold;
    if (!burst[i]) {
      ++gap;
      continue;
    }
    if (begun && static_cast<double>(gap) < least_gap) {
      for (size_t back = 1; back <= gap; ++back) burst[i - back] = true;
    }
    begun = true;
    gap = 0;
  }
  return burst;
}

// Lengths of runs of one kind. Runs at the ends count only where no other does.
Runs runs_of(const std::vector<bool>& burst, bool kind) {
  Runs whole, cut;
  size_t begin = 0;
  while (begin < burst.size()) {
    size_t end = begin + 1;
    while (end < burst.size() && burst[end] == burst[begin]) ++end;
    if (burst[begin] == kind) (begin == 0 || end == burst.size() ? cut : whole).add(end - begin);
    begin = end;
  }
  return whole.count > 0 ? whole : cut;
}

double mean_of_bursts(const std::vector<double>& values, const std::vector<bool>& burst) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!burst[i]) continue;
    sum += values[i];
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

// The integral of a piecewise linear counter, or of levels, from the first reading to each reading.
double interpolated(const std::vector<CounterReading>& readings, int64_t ns) {
  const auto after = std::lower_bound(readings.begin(), readings.end(), ns,
                                      [](const CounterReading& reading, int64_t time) { return reading.ns < time; });
  if (after == readings.end()) return readings.back().value;
  if (after == readings.begin()) return readings.front().value;
  const CounterReading& a = *(after - 1);
  const double share = static_cast<double>(ns - a.ns) / static_cast<double>(after->ns - a.ns);
  return a.value + share * (after->value - a.value);
}

}  // namespace

TwoMeans two_means(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  const double all = static_cast<double>(values.size());
  TwoMeans best{total / all, total / all, total / all};
  double most = 0;  // between-group sum of squares: the larger, the less is left within the groups
  double sum = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    sum += values[i - 1];
    if (values[i] == values[i - 1]) continue;
    const double low = sum / static_cast<double>(i), high = (total - sum) / (all - static_cast<double>(i));
    const double between = static_cast<double>(i) * (all - static_cast<double>(i)) * (high - low) * (high - low);
    if (between > most) {
      most = between;
      best = {low, high, (low + high) / 2};
    }
  }
  return best;
}

std::string name(Pattern pattern) {
  switch (pattern) {
    case Pattern::kIdle: return "I";
    case Pattern::kAlternating: return "BIB";
    case Pattern::kBurst: return "B";
  }
  return "";
}

BurstMetrics burst_metrics(const Series& series, double floor, double least_idle_ms) {
  CHECK(series.period_ns > 0, "a series needs a period");
  BurstMetrics metrics;
  const std::vector<double>& values = series.values;
  if (values.empty()) return metrics;
  metrics.mean = mean(values);
  const TwoMeans means = two_means(values);
  if (means.high <= floor || means.low >= kTwoLevels * means.high) {  // one level
    metrics.threshold = floor;
  } else {
    metrics.threshold = std::max(floor, means.threshold);
  }
  const double step_ms = static_cast<double>(series.period_ns) * 1e-6;
  const std::vector<bool> burst = bursts_of(values, metrics.threshold, least_idle_ms / step_ms);
  const Runs bursts = runs_of(burst, true);
  const Runs idles = runs_of(burst, false);
  metrics.bursts = bursts.count;
  metrics.idles = idles.count;
  metrics.pattern = bursts.count == 0 ? Pattern::kIdle : idles.count == 0 ? Pattern::kBurst : Pattern::kAlternating;
  metrics.burst_ms = bursts.mean() * step_ms;
  metrics.idle_ms = idles.mean() * step_ms;
  metrics.amount = mean_of_bursts(values, burst);
  return metrics;
}

Series rate_series(const std::vector<CounterReading>& readings, int64_t begin_ns, int64_t end_ns, int64_t period_ns) {
  CHECK(period_ns > 0, "a series needs a period");
  Series series{period_ns, {}};
  if (readings.empty()) return series;
  const int64_t last = std::min(end_ns, readings.back().ns);
  double before = interpolated(readings, begin_ns);
  for (int64_t ns = begin_ns + period_ns; ns <= last; ns += period_ns) {
    const double now = interpolated(readings, ns);
    series.values.push_back((now - before) * 1e9 / static_cast<double>(period_ns));
    before = now;
  }
  return series;
}

Series level_series(const std::vector<CounterReading>& readings, int64_t begin_ns, int64_t end_ns, int64_t period_ns) {
  std::vector<CounterReading> integral;
  double sum = 0;
  for (size_t i = 0; i < readings.size(); ++i) {
    if (i > 0) sum += readings[i].value * static_cast<double>(readings[i].ns - readings[i - 1].ns) * 1e-9;
    integral.push_back({readings[i].ns, sum});
  }
  return rate_series(integral, begin_ns, end_ns, period_ns);
}

}  // namespace forerun::monitor
