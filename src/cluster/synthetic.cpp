#include "cluster/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <random>
#include <set>

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

Error bad_synthetic(const std::string& text, const std::string& part) {
  return {fmt::format("'{}' in '{}' says nothing about jobs", part, text), "--synthetic",
          "write jobs=100000,gpus=1000,seed=1,days=30,load=0.95 (each once; any may be left out)"};
}

}  // namespace

Result<SyntheticOptions> parse_synthetic(const std::string& text) {
  SyntheticOptions options;
  std::set<std::string> seen;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    double value = 0;
    const char* last = part.data() + part.size();
    const auto [stop, fault] = std::from_chars(part.data() + std::min(equals + 1, part.size()), last, value);
    if (fault != std::errc() || stop != last || !(value >= 0)) return bad_synthetic(text, part);
    if (!seen.insert(name).second) return bad_synthetic(text, part);
    const bool whole = value == std::floor(value);
    if (name == "jobs" && value >= 1 && value <= 1e9 && whole) {
      options.jobs = static_cast<int64_t>(value);
    } else if (name == "gpus" && value >= 1 && value <= 1e9 && whole) {
      options.gpus = static_cast<int32_t>(value);
    } else if (name == "seed" && value < 1e15 && whole) {
      options.seed = static_cast<uint64_t>(value);
    } else if (name == "days" && value > 0 && value <= 36500) {
      options.days = value;
    } else if (name == "load" && value > 0 && value <= 100) {
      options.load = value;
    } else {
      return bad_synthetic(text, part);
    }
  }
  if (const double mean = mean_duration(options); !(mean >= kShortestMean && mean <= kLongestMean)) {
    return Error{
        fmt::format("'{}' asks for jobs of {:.3g} s on average", text, mean), "--synthetic",
        "change jobs, gpus, days or load: durations are cut at 1 s and 30 days, so that a mean from 10 s to 20 "
        "days can be had"};
  }
  return options;
}

Workload synthetic_jobs(const SyntheticOptions& options) {
  Workload workload;
  const auto jobs = static_cast<size_t>(options.jobs);
  const double between = mean_gap(options);
  const double median = median_for(mean_duration(options));
  Draws draws(options.seed);
  workload.jobs.reserve(jobs);
  workload.truth.reserve(jobs);
  Time now;
  for (size_t i = 0; i < jobs; ++i) {
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
