#include "cluster/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "base/options_text.h"

namespace forerun::cluster {
namespace {

constexpr double kSpread = 2.4;           // of the logarithm of durations
constexpr double kJobsPerGpuDay = 0.274;  // 10 million jobs a year on 100,000 GPUs
constexpr Time kLongest{30 * 86400 * kSecond.value};

struct GangShare {
  int32_t gpus;
  double share;
};
constexpr std::array<GangShare, 11> kGangs = {{{1, 0.9307},
                                               {2, 0.0221},
                                               {4, 0.0227},
                                               {8, 0.0200},
                                               {16, 0.0026},
                                               {32, 0.0010},
                                               {64, 0.0005},
                                               {128, 0.0002},
                                               {256, 0.0001},
                                               {512, 0.00007},
                                               {1024, 0.00003}}};

class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed) {}
  double uniform() { return (static_cast<double>(random_() >> 11) + 1) * 0x1p-53; }
  double exponential() { return -std::log(uniform()); }
  double normal() { return std::sqrt(2 * exponential()) * std::cos(2 * M_PI * uniform()); }
  int32_t gang(int32_t most) {
    double place = uniform();
    int32_t gpus = 1;
    for (const GangShare& gang : kGangs) {
      if (gang.gpus > most) break;
      gpus = gang.gpus;
      place -= gang.share;
      if (place <= 0) break;
    }
    return place > 0 ? 1 : gpus;
  }

 private:
  std::mt19937_64 random_;
};

// Mean of a log-normal duration of that median, cut at kLongest.
double cut_mean(double median) {
  const auto phi = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  const double place = std::log(seconds(kLongest) / median) / kSpread;
  return median * std::exp(kSpread * kSpread / 2) * phi(place - kSpread) + seconds(kLongest) * (1 - phi(place));
}

// The median that gives a mean; the mean cannot reach kLongest.
double median_for(double mean) {
  double low = 1e-3;
  double high = 1e9;
  for (int i = 0; i < 200; ++i) {
    const double middle = std::sqrt(low * high);
    (cut_mean(middle) < mean ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

constexpr double kShortestMean = 10;  // seconds; nearer to what durations are cut at it is not reached
constexpr double kLongestMean = 20 * 86400;

// Seconds between arrivals.
double mean_gap(const SyntheticOptions& options) {
  const auto jobs = static_cast<double>(options.jobs);
  const double days = options.days > 0 ? options.days : jobs / (kJobsPerGpuDay * static_cast<double>(options.gpus));
  return days * 86400 / jobs;
}

// Seconds that give the load.
double mean_duration(const SyntheticOptions& options) {
  double mean_gang = 0;
  for (const GangShare& gang : kGangs) mean_gang += gang.gpus <= options.gpus ? gang.gpus * gang.share : gang.share;
  return options.load * static_cast<double>(options.gpus) * mean_gap(options) / mean_gang;
}

constexpr const char* kSyntheticRemedy =
    "write jobs=100000,gpus=1000,seed=1,days=30,load=0.95 (each once; any may be left out)";
constexpr double kLeastShare = 1e-6;  // of days and of load
constexpr double kMostJobs = 1e9, kMostSyntheticGpus = 1e9, kMostDays = 36500, kMostLoad = 100;

}  // namespace

Result<SyntheticOptions> parse_synthetic(const std::string& text) {
  const auto given = parse_key_values(text, {"--synthetic", kSyntheticRemedy});
  if (!given) return given.error();
  if (given->empty()) return Error{"nothing is said about jobs", "--synthetic", kSyntheticRemedy};
  SyntheticOptions options;
  OptionReader reader(*given, {"--synthetic " + text, kSyntheticRemedy});
  options.jobs = reader.whole("jobs", options.jobs, 1, kMostJobs);
  options.gpus = static_cast<int32_t>(reader.whole("gpus", options.gpus, 1, kMostSyntheticGpus));
  options.seed = static_cast<uint64_t>(reader.whole("seed", static_cast<int64_t>(options.seed), 0, 1e15));
  options.days = reader.number("days", options.days, kLeastShare, kMostDays);
  options.load = reader.number("load", options.load, kLeastShare, kMostLoad);
  if (const Status status = reader.status(); !status) return status.error();
  if (const Status status = check_synthetic(options); !status) return status.error().within(text);
  return options;
}

Status check_synthetic(const SyntheticOptions& options) {
  const bool counted = options.jobs >= 1 && static_cast<double>(options.jobs) <= kMostJobs && options.gpus >= 1;
  const bool spread = (options.days == 0 || (options.days >= kLeastShare && options.days <= kMostDays)) &&
                      options.load >= kLeastShare && options.load <= kMostLoad;
  if (!counted || !spread) return Error{"there can be no such jobs", "--synthetic", kSyntheticRemedy};
  if (const double mean = mean_duration(options); !(mean >= kShortestMean && mean <= kLongestMean)) {
    return Error{
        fmt::format("these are jobs of {:.3g} s on average", mean), "--synthetic",
        "change jobs, gpus, days or load: durations are cut at 1 s and 30 days, so that a mean from 10 s to 20 "
        "days can be had"};
  }
  return {};
}

Workload synthetic_jobs(const SyntheticOptions& options, Work* work) {
  Workload workload;
  const auto jobs = static_cast<size_t>(options.jobs);
  const double between = mean_gap(options);
  const double median = median_for(mean_duration(options));
  Draws draws(options.seed);
  workload.jobs.reserve(jobs);
  workload.truth.reserve(jobs);
  Time now;
  for (size_t i = 0; i < jobs; ++i) {
    if (work != nullptr && !work->advance()) break;
    Job job;
    job.arrival = now;
    job.gpus = draws.gang(options.gpus);
    workload.jobs.push_back(job);
    const Time duration = time_from_seconds(std::ceil(median * std::exp(kSpread * draws.normal())));
    workload.truth.add(std::clamp(duration, kSecond, kLongest));
    now += time_from_seconds(between * draws.exponential());
  }
  return workload;
}

}  // namespace forerun::cluster
