#include "cluster/predictions.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "base/nearest.h"

namespace forerun::cluster {
namespace {

// Mean errors on unseen models as published: ETS on T4 and 2080Ti, DNNPerf's time model on unseen models.
constexpr double kEtsError = 0.073;
constexpr double kDnnPerfError = 0.077;

class NormalNumbers {
 public:
  explicit NormalNumbers(uint64_t seed) : random_(seed) {}
  double next() {  // Box and Muller; the same on every machine up to its log and cos
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }

 private:
  double uniform() { return (static_cast<double>(random_() >> 11) + 1) * 0x1p-53; }
  std::mt19937_64 random_;
};

Durations with_error(const Workload& workload, double error, uint64_t seed) {
  Durations predicted = workload.truth;
  NormalNumbers normal(seed);
  const double spread = spread_for_error(error);
  for (JobIndex job = 0; job < predicted.jobs(); ++job) {
    for (TypeIndex type = 0; type < predicted.types(); ++type) {
      const Time truth = predicted.of(job, type);
      const double factor = std::exp(spread * normal.next());
      if (truth == kNever) continue;
      const double time = std::min(static_cast<double>(truth.value) * factor, 9e18);
      predicted.set(job, type, Time(std::max<int64_t>(std::llround(time), 1)));
    }
  }
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

Result<double> parse_error(const std::string& text) {
  const std::string number = text.substr(text.find(':') + 1);
  double percent = 0;
  const auto [stop, fault] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (fault != std::errc() || stop != number.data() + number.size() || !(percent >= 0 && percent <= 1000)) {
    return Error{fmt::format("'{}' is no mean error in percent", number), "--predictor", "write error:8 for 8 %"};
  }
  return percent / 100;
}

}  // namespace

const std::vector<PredictorEntry>& predictors() {
  static const std::vector<PredictorEntry> list = {
      {"perfect", "the true durations"},
      {"none", "no sizes: all jobs look alike, on all GPU types"},
      {"class-mean", "the mean duration of what the job trains, or of its user, and its gang"},
      {"error:MAPE", "the true durations with a random error of MAPE percent on average"},
      {"ets", "errors as published for ETS: 7.3 %"},
      {"dnnperf", "errors as published for DNNPerf on unseen models: 7.7 %"},
  };
  return list;
}

bool is_random(const std::string& predictor) {
  return predictor != "perfect" && predictor != "none" && predictor != "class-mean";
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

Result<Durations> predict_durations(const Workload& workload, const std::string& predictor, uint64_t seed) {
  if (predictor == "perfect") return workload.truth;
  if (predictor == "none") return no_sizes(workload);
  if (predictor == "class-mean") return class_means(workload);
  if (predictor == "ets") return with_error(workload, kEtsError, seed);
  if (predictor == "dnnperf") return with_error(workload, kDnnPerfError, seed);
  if (predictor.starts_with("error:")) {
    const auto error = parse_error(predictor);
    return error ? Result<Durations>(with_error(workload, *error, seed)) : error.error();
  }
  std::vector<std::string> names;
  for (const PredictorEntry& entry : predictors()) names.emplace_back(entry.name);
  return Error{fmt::format("no predictor is called '{}'", predictor), "--predictor", did_you_mean(predictor, names)};
}

}  // namespace forerun::cluster
