// Bursts and idles of a resource: the three numbers a series is summed up by.
//
// A series is a resource's use at equal steps of time: utilisation in percent, or bytes a second. Two-means separates what
// is burst from what is idle; the pattern is I (idle only), BIB (both, in turns) or B (burst only), and a series gives its
// mean idle duration, its mean burst duration and the mean level of its bursts (Driple, POMACS 2022). Runs that the ends of
// the series cut off are left out of the mean durations wherever a whole run of their kind exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace forerun::monitor {

struct Series {
  int64_t period_ns = 0;
  std::vector<double> values;
};

// The split of values into two groups with the least sum of squared distances to their means.
struct TwoMeans {
  double low = 0, high = 0;  // the means
  double threshold = 0;      // midway: values above are of the upper group
};

// Exact: tries every split of the sorted values. Values that are all equal give low = high.
TwoMeans two_means(std::vector<double> values);

enum class Pattern { kIdle, kAlternating, kBurst };

std::string name(Pattern pattern);  // "I", "BIB", "B"

struct BurstMetrics {
  Pattern pattern = Pattern::kIdle;
  double idle_ms = 0;    // mean duration of idles
  double burst_ms = 0;   // mean duration of bursts
  double amount = 0;     // mean value during bursts, in the unit of the series
  double mean = 0;       // of all values
  double threshold = 0;  // what separates the two
  size_t bursts = 0, idles = 0;
};

// `floor`: values up to it are idle whatever the others are. Where the idle mean is not under half of the burst mean there
// are no two levels: the series is burst only. Idles between two bursts that are shorter than `least_idle_ms` belong to the
// burst around them: what shares a link takes turns on it.
BurstMetrics burst_metrics(const Series& series, double floor, double least_idle_ms = 0);

// A counter read at times that are not quite equal, as a series of its rate: units a second in steps of `period_ns`
// from `begin_ns`, by linear interpolation between readings. Steps outside the readings are left out at the end.
struct CounterReading {
  int64_t ns = 0;
  double value = 0;
};
Series rate_series(const std::vector<CounterReading>& readings, int64_t begin_ns, int64_t end_ns, int64_t period_ns);

// Levels that hold for intervals (each ends at its `ns` and begins at the one before), averaged over steps.
Series level_series(const std::vector<CounterReading>& readings, int64_t begin_ns, int64_t end_ns, int64_t period_ns);

}  // namespace forerun::monitor
