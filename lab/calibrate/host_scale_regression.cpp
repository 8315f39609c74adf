#include "lab/calibrate/host_scale_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/calibrate/bounded_squares.h"

namespace forerun {
namespace {

constexpr double kFirstSlope = 0.7;  // of all weights together
constexpr int kSteps = 20;
constexpr double kSmallestOff = 0.02;  // errors below count as this large: weights stay finite
constexpr double kUsualOff = 0.15;

std::optional<double> reading_of(const std::vector<std::pair<std::string, double>>& readings, const std::string& kind) {
  for (const auto& [name, us] : readings) {
    if (name == kind && us > 0) return us;
  }
  return std::nullopt;
}

// Logarithms of the readings over their references, forward ones first; empty where one is missing.
std::vector<double> log_readings(const HostScale& scale, const HostCalibration& calibration) {
  std::vector<double> logs;
  for (const auto* list : {&scale.forward, &scale.backward}) {
    const auto& taken = list == &scale.forward ? calibration.forward : calibration.backward;
    for (const ScaleReading& wanted : *list) {
      const auto us = reading_of(taken, wanted.kind);
      if (!us) return {};
      logs.push_back(std::log(*us / wanted.reference_us));
    }
  }
  return logs;
}

HostScale with_weights(HostScale scale, const std::vector<double>& weights, double at_reference) {
  size_t i = 0;
  for (auto* list : {&scale.forward, &scale.backward}) {
    for (ScaleReading& reading : *list) reading.weight = std::round(1000 * weights[i++]) / 1000;
  }
  scale.at_reference = std::round(1000 * at_reference) / 1000;
  return scale;
}

// Weights and, last, the logarithm of at_reference: steps towards the least mean relative error.
std::vector<double> fit_weights(const std::vector<std::vector<double>>& rows, const std::vector<double>& ratios,
                                std::vector<double> unknowns, double ridge) {
  const size_t count = unknowns.size();
  for (int step = 0; step < kSteps; ++step) {
    BoundedSquares squares(count);
    squares.low.back() = -std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < count; ++i) squares.pull(i, 0, i + 1 < count ? ridge : 1e-6);
    for (size_t r = 0; r < rows.size(); ++r) {
      std::vector<double> slopes = rows[r];
      double exponent = 0;
      for (size_t i = 0; i < count; ++i) exponent += rows[r][i] * unknowns[i];
      const double predicted = ratios[r] * std::exp(exponent);
      const double error = predicted - 1;
      for (double& slope : slopes) slope *= predicted;
      squares.add(slopes.data(), predicted * exponent - error, kUsualOff / std::max(std::abs(error), kSmallestOff));
    }
    const std::vector<double> next = squares.solve();
    for (size_t i = 0; i < count; ++i) unknowns[i] = (unknowns[i] + next[i]) / 2;
  }
  return unknowns;
}

}  // namespace

double mean_error(std::span<const HostSample* const> samples, const HostConstants& constants) {
  double sum = 0;
  for (const HostSample* sample : samples) sum += std::abs(predicted_us(*sample, constants) / sample->iteration_us - 1);
  return sum / static_cast<double>(samples.size());
}

HostScale first_scale(std::span<const HostSample* const> samples, const HostRegressionOptions& options) {
  HostScale scale;
  for (const std::string& kind : options.forward_kinds) scale.forward.push_back({kind, 1, 0});
  for (const std::string& kind : options.backward_kinds) scale.backward.push_back({kind, 1, 0});
  const size_t count = scale.forward.size() + scale.backward.size();
  std::vector<double> sums(count, 0.0);
  double calibrated = 0;
  for (const HostSample* sample : samples) {
    const std::vector<double> logs = log_readings(scale, sample->calibration);
    for (size_t i = 0; i < logs.size(); ++i) sums[i] += logs[i];
    calibrated += logs.empty() ? 0 : 1;
  }
  size_t i = 0;
  for (auto* list : {&scale.forward, &scale.backward}) {
    for (ScaleReading& reading : *list) {
      if (calibrated > 0) reading.reference_us = std::round(100 * std::exp(sums[i++] / calibrated)) / 100;
      reading.weight = kFirstSlope / static_cast<double>(count);
    }
  }
  return scale;
}

HostScale calibrate_host_scale(std::span<const HostSample* const> samples, const HostConstants& constants,
                               const HostRegressionOptions& options) {
  std::vector<const HostSample*> calibrated;
  std::vector<std::vector<double>> rows;
  std::vector<double> ratios;
  for (const HostSample* sample : samples) {
    std::vector<double> row = log_readings(constants.scale, sample->calibration);
    if (row.empty()) continue;
    row.push_back(1);
    rows.push_back(std::move(row));
    calibrated.push_back(sample);
    ratios.push_back(microseconds(host_cost(sample->counts, constants)) / sample->iteration_us);
  }
  if (rows.empty()) return constants.scale;
  std::vector<double> unknowns;
  for (const auto* list : {&constants.scale.forward, &constants.scale.backward}) {
    for (const ScaleReading& reading : *list) unknowns.push_back(reading.weight);
  }
  unknowns.push_back(std::log(constants.scale.at_reference));
  unknowns = fit_weights(rows, ratios, std::move(unknowns), options.ridge);
  // The level once more, with the GPU's share in the iterations.
  HostConstants tried = constants;
  HostScale best = constants.scale;
  double least = std::numeric_limits<double>::infinity();
  for (int percent = -10; percent <= 10; ++percent) {
    tried.scale = with_weights(constants.scale, unknowns, std::exp(unknowns.back() + percent / 100.0));
    const double error = mean_error(calibrated, tried);
    if (error < least) {
      least = error;
      best = tried.scale;
    }
  }
  return best;
}

}  // namespace forerun
