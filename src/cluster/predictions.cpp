#include "cluster/predictions.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "base/check.h"
#include "base/options_text.h"
#include "base/statistics.h"

namespace forerun::cluster {
namespace {

class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : random_(seed) {}
  double normal() {  // Box and Muller; the same on every machine up to its log and cos
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }
  double uniform() { return (static_cast<double>(random_() >> 11) + 1) * 0x1p-53; }  // above 0, up to 1

 private:
  std::mt19937_64 random_;
};

// The true durations times what `factor()` says, asked once for every job and type.
template <class Factor>
Durations with_factors(const Workload& workload, const Factor& factor) {
  Durations predicted = workload.truth;
  for (JobIndex job = 0; job < predicted.jobs(); ++job) {
    for (TypeIndex type = 0; type < predicted.types(); ++type) {
      const Time truth = predicted.of(job, type);
      const double times = std::round(factor() * 0x1p32) * 0x1p-32;  // the same whatever the last digit of exp()
      if (truth == kNever) continue;
      const double time = std::min(static_cast<double>(truth.value) * times, 9e18);
      predicted.set(job, type, Time(std::max<int64_t>(std::llround(time), 1)));
    }
  }
  return predicted;
}

Durations with_error(const Workload& workload, double error, uint64_t seed) {
  RandomNumbers random(seed);
  const double spread = spread_for_error(error);
  return with_factors(workload, [&] { return std::exp(spread * random.normal()); });
}

// What a user asks for who knows the duration up to a factor and is never killed: whole minutes, as limits are stated.
Durations limits_up_to(const Workload& workload, double most, uint64_t seed) {
  RandomNumbers random(seed);
  Durations limits = with_factors(workload, [&] { return 1 + (most - 1) * random.uniform(); });
  const int64_t minute = 60 * kSecond.value;
  for (JobIndex job = 0; job < limits.jobs(); ++job) {
    for (TypeIndex type = 0; type < limits.types(); ++type) {
      const int64_t limit = std::max(limits.of(job, type), workload.truth.of(job, type)).value;
      if (limit < kNever.value - minute) limits.set(job, type, Time((limit + minute - 1) / minute * minute));
    }
  }
  return limits;
}

// Those of `own` in place of others, where a job can run at all.
void take_own(const Workload& workload, std::span<const Time> own, Durations& predicted) {
  CHECK(own.size() == workload.jobs.size() * predicted.types(), "predictions of other jobs");
  for (JobIndex job = 0; job < predicted.jobs(); ++job) {
    for (TypeIndex type = 0; type < predicted.types(); ++type) {
      const Time time = own[size_t{job} * predicted.types() + type];
      if (time.value > 0 && workload.truth.of(job, type) != kNever) predicted.set(job, type, time);
    }
  }
}

Durations as_predicted(const Workload& workload, std::span<const Time> own) {
  Durations predicted = workload.truth;  // of types that a job cannot run on
  take_own(workload, own, predicted);
  return predicted;
}

// Ratios are drawn by their measured distribution, linear between the quantiles that are kept of it.
Durations as_measured(const Workload& workload, const std::vector<double>& ratios, std::span<const Time> own,
                      uint64_t seed) {
  RandomNumbers random(seed);
  CHECK(!ratios.empty(), "a measured predictor without errors");
  Durations predicted = with_factors(workload, [&] { return sorted_quantile(ratios, random.uniform()); });
  if (!own.empty()) take_own(workload, own, predicted);
  return predicted;
}

struct Mean {
  double sum = 0;
  double count = 0;
};

// The mean over all jobs that `class_of` gives the same value, by type.
template <class ClassOf>
Durations mean_by(const Workload& workload, const ClassOf& class_of) {
  using Key = decltype(class_of(JobIndex{}));
  Durations predicted = workload.truth;
  std::map<Key, std::vector<Mean>> means;
  for (JobIndex job = 0; job < predicted.jobs(); ++job) {
    std::vector<Mean>& mean = means[class_of(job)];
    mean.resize(predicted.types());
    for (TypeIndex type = 0; type < predicted.types(); ++type) {
      if (predicted.of(job, type) == kNever) continue;
      mean[type].sum += static_cast<double>(predicted.of(job, type).value);
      mean[type].count += 1;
    }
  }
  for (JobIndex job = 0; job < predicted.jobs(); ++job) {
    const std::vector<Mean>& mean = means[class_of(job)];
    for (TypeIndex type = 0; type < predicted.types(); ++type) {
      if (predicted.of(job, type) == kNever) continue;
      predicted.set(job, type, Time(std::max<int64_t>(std::llround(mean[type].sum / mean[type].count), 1)));
    }
  }
  return predicted;
}

// One duration for all jobs on all types they can run on.
Durations no_sizes(const Workload& workload) {
  Durations predicted = workload.truth;
  Mean mean;
  const auto for_each = [&](const auto& visit) {
    for (JobIndex job = 0; job < predicted.jobs(); ++job) {
      for (TypeIndex type = 0; type < predicted.types(); ++type) {
        if (predicted.of(job, type) != kNever) visit(job, type);
      }
    }
  };
  for_each([&](JobIndex job, TypeIndex type) {
    mean.sum += static_cast<double>(predicted.of(job, type).value);
    mean.count += 1;
  });
  const Time all(std::max<int64_t>(std::llround(mean.sum / std::max(mean.count, 1.0)), 1));
  for_each([&](JobIndex job, TypeIndex type) { predicted.set(job, type, all); });
  return predicted;
}

Durations class_means(const Workload& workload) {
  return mean_by(workload, [&](JobIndex index) {
    const Job& job = workload.jobs[index];
    if (job.kind >= 0) return std::tuple(job.kind, job.gpus, -1);
    return std::tuple(-1, job.gpus, job.user >= 0 ? job.user : job.virtual_cluster);
  });
}

Durations as_stated(const Workload& workload) {
  Time longest(1);
  for (const Time limit : workload.limits) {
    if (limit != kNever) longest = std::max(longest, limit);
  }
  Durations predicted = workload.truth;
  for (JobIndex job = 0; job < predicted.jobs(); ++job) {
    const Time limit = workload.limits.empty() || workload.limits[job] == kNever ? longest : workload.limits[job];
    for (TypeIndex type = 0; type < predicted.types(); ++type) {
      if (predicted.of(job, type) != kNever) predicted.set(job, type, limit);
    }
  }
  return predicted;
}

}  // namespace

const std::vector<PredictorEntry>& predictors() {
  static const std::vector<PredictorEntry> list = {
      {"perfect", "the true durations"},
      {"none", "no sizes: all jobs look alike, on all GPU types"},
      {"class-mean", "the mean duration of what the job trains, or of its user, and its gang"},
      {"error:MAPE", "the true durations with a random error of MAPE percent on average"},
      {"limits", "the time limits that users stated, where the file has them"},
      {"limits:FACTOR", "limits that are never too low: whole minutes, of 1 to FACTOR times the true durations"},
      {"hybrid", "what `forerun predict` says of jobs that name a model; of others, its measured errors"},
      {"error-like:NAME",
       "true durations x errors drawn as `forerun eval` measured those of NAME: ets, dnnperf, gbdt, hybrid; "
       "ets@SUITE: on another suite than h200"},
  };
  return list;
}

Result<std::optional<Predictor>> parse_built_in_predictor(const std::string& text) {
  for (const auto& [name, kind] : {std::pair("perfect", PredictorKind::perfect),
                                   {"none", PredictorKind::none},
                                   {"class-mean", PredictorKind::class_mean},
                                   {"limits", PredictorKind::stated_limits}}) {
    if (text == name) return std::optional(Predictor{.kind = kind, .name = text});
  }
  const std::string number = text.substr(text.find(':') + 1);
  const double value = number_in(number).value_or(-1);
  if (text.starts_with("error:")) {
    if (value >= 0 && value <= 1000) return std::optional(Predictor{PredictorKind::error, value / 100, text});
    return Error{fmt::format("'{}' is no mean error in percent", number), "--predictor", "write error:8 for 8 %"};
  }
  if (text.starts_with("limits:")) {
    if (value >= 1 && value <= 1000) return std::optional(Predictor{PredictorKind::limits, value, text});
    return Error{fmt::format("'{}' is no factor from 1 to 1000", number), "--predictor",
                 "write limits:3 for limits of once to three times the true durations"};
  }
  return std::optional<Predictor>();
}

double spread_for_error(double mean_absolute_error) {
  // E|exp(s z) - 1| = exp(s^2 / 2) (2 Phi(s) - 1) = exp(s^2 / 2) erf(s / sqrt 2), which grows with s.
  double low = 0;
  double high = 10;
  for (int i = 0; i < 100; ++i) {
    const double s = (low + high) / 2;
    (std::exp(s * s / 2) * std::erf(s / std::sqrt(2.0)) < mean_absolute_error ? low : high) = s;
  }
  return mean_absolute_error <= 0 ? 0 : (low + high) / 2;
}

Durations predict_durations(const Workload& workload, const Predictor& predictor, uint64_t seed,
                            std::span<const Time> own) {
  switch (predictor.kind) {
    case PredictorKind::perfect: break;
    case PredictorKind::none: return no_sizes(workload);
    case PredictorKind::class_mean: return class_means(workload);
    case PredictorKind::stated_limits: return as_stated(workload);
    case PredictorKind::error: return with_error(workload, predictor.value, seed);
    case PredictorKind::limits: return limits_up_to(workload, predictor.value, seed);
    case PredictorKind::error_like:
    case PredictorKind::hybrid: return as_measured(workload, predictor.errors.ratios, own, seed);
    case PredictorKind::learned: return as_predicted(workload, own);
  }
  return workload.truth;
}

}  // namespace forerun::cluster
