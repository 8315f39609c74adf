#include "lab/calibrate/host_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "lab/calibrate/bounded_squares.h"
#include "lab/calibrate/host_scale_regression.h"

namespace forerun {
namespace {

// What is fitted, with the rough figure that it is held to, in microseconds.
enum Cost : uint8_t {
  forward_op,
  backward_op,
  update_op,
  forward_view,
  backward_view,
  optimizer_op,
  further_kernel,
  foreach_tensor,
  parameter,
  host_op,
  iteration,
};
constexpr size_t kCosts = iteration + 1;
constexpr std::array<double, kCosts> kRough = {30, 22, 16, 8, 2, 100, 8, 1, 40, 5, 800};
constexpr double kMarkUs = 2;            // too few to fit
constexpr double kUpdateViewUs = 4;      // the same
constexpr int kReweightings = 12;        // until least squares have become least absolute errors
constexpr double kSmallestError = 0.02;  // errors below count as this large: weights stay finite
constexpr double kUsualError = 0.15;
constexpr int kScaleRounds = 4;  // of fitting costs and scale in turn

using Vector = std::array<double, kCosts>;

Vector amounts_of(const HostCounts& counts) {
  Vector amounts = {};
  for (size_t phase = 0; phase < 3; ++phase) {
    for (size_t i = 0; i < kOpClassCount; ++i) {
      const auto count = static_cast<double>(counts.op[phase][i]);
      const auto cls = static_cast<OpClass>(i);
      if (cls == OpClass::optimizer) {
        amounts[optimizer_op] += count;
      } else if (cls != OpClass::view) {
        amounts[phase] += count;
      } else if (phase < 2) {
        amounts[forward_view + phase] += count;
      }
    }
  }
  amounts[further_kernel] = static_cast<double>(counts.further_kernels);
  amounts[foreach_tensor] = static_cast<double>(counts.foreach_tensors);
  amounts[parameter] = static_cast<double>(counts.parameters);
  amounts[host_op] = static_cast<double>(counts.host_ops);
  amounts[iteration] = 1;
  return amounts;
}

// Of views in the update and marks, whose costs are set.
double set_us(const HostCounts& counts) {
  const int64_t views = counts.op[static_cast<size_t>(Phase::update)][static_cast<size_t>(OpClass::view)];
  return kUpdateViewUs * static_cast<double>(views) + kMarkUs * static_cast<double>(counts.marks);
}

Nanoseconds rounded(double us) { return nanoseconds_from_us(std::round(us * 10) / 10); }

HostConstants constants_of(const Vector& costs, const HostScale& scale) {
  HostConstants constants;
  for (size_t phase = 0; phase < 3; ++phase) {
    constants.op[phase].fill(rounded(costs[phase]));
    constants.op[phase][static_cast<size_t>(OpClass::optimizer)] = rounded(costs[optimizer_op]);
    const double view = phase < 2 ? costs[forward_view + phase] : kUpdateViewUs;
    constants.op[phase][static_cast<size_t>(OpClass::view)] = rounded(view);
  }
  constants.host_op = rounded(costs[host_op]);
  constants.mark = rounded(kMarkUs);
  constants.further_kernel = rounded(costs[further_kernel]);
  constants.foreach_tensor = rounded(costs[foreach_tensor]);
  constants.parameter = rounded(costs[parameter]);
  constants.iteration = rounded(costs[iteration]);
  constants.scale = scale;
  return constants;
}

struct Row {
  Vector amounts;     // times what a calibration scales them by, as parts of the iteration
  double target = 1;  // 1 less what is set
  double share(const Vector& costs) const {
    double sum = 0;
    for (size_t i = 0; i < kCosts; ++i) sum += amounts[i] * costs[i];
    return sum;
  }
};

Vector fit_costs(const std::vector<Row>& rows, double strength) {
  Vector costs = kRough;
  std::vector<double> weights(rows.size(), 1);
  for (int round = 0; round < kReweightings; ++round) {
    BoundedSquares squares(kCosts);
    for (size_t i = 0; i < kCosts; ++i) {
      squares.unit[i] = kRough[i];
      squares.pull(i, kRough[i], strength * strength / (kRough[i] * kRough[i]));
    }
    for (size_t r = 0; r < rows.size(); ++r) squares.add(rows[r].amounts.data(), rows[r].target, weights[r]);
    const std::vector<double> solved = squares.solve();
    std::copy(solved.begin(), solved.end(), costs.begin());
    for (size_t r = 0; r < rows.size(); ++r) {
      const double error = std::abs(rows[r].share(costs) - rows[r].target);
      weights[r] = kUsualError / std::max(error, kSmallestError);
    }
  }
  return costs;
}

// The costs times what makes the error of the samples without a calibration least: the constants are those of their
// machine, and what a calibration scales them by is fitted apart.
Vector levelled(const std::vector<const HostSample*>& samples, const Vector& costs, const HostScale& scale) {
  std::vector<const HostSample*> plain;
  for (const HostSample* sample : samples) {
    if (!host_slowness(scale, sample->calibration)) plain.push_back(sample);
  }
  if (plain.empty()) return costs;
  const auto times = [&](int percent) {
    Vector scaled = costs;
    for (double& cost : scaled) cost *= percent / 100.0;
    return scaled;
  };
  int best = 100;
  double least = std::numeric_limits<double>::infinity();
  for (int percent = 85; percent <= 115; ++percent) {
    const double error = mean_error(plain, constants_of(times(percent), scale));
    if (error < least) {
      least = error;
      best = percent;
    }
  }
  return times(best);
}

// Readings that say nothing need not be taken.
void drop_weightless(HostScale& scale) {
  for (auto* list : {&scale.forward, &scale.backward}) {
    std::erase_if(*list, [](const ScaleReading& reading) { return reading.weight == 0; });
  }
}

std::vector<Row> rows_of(const std::vector<const HostSample*>& samples, const HostConstants& constants) {
  std::vector<Row> rows;
  for (const HostSample* sample : samples) {
    const double part = 1 / (host_speed(constants, sample->calibration) * sample->iteration_us);
    Row row{amounts_of(sample->counts), 1 - set_us(sample->counts) * part};
    for (double& amount : row.amounts) amount *= part;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

double predicted_us(const HostSample& sample, const HostConstants& constants) {
  const double host = microseconds(host_cost(sample.counts, constants)) / host_speed(constants, sample.calibration);
  return std::max(host, sample.gpu_us);
}

Result<HostRegression> calibrate_host_costs(std::span<const HostSample> samples, const HostRegressionOptions& options) {
  std::vector<const HostSample*> used;
  for (const HostSample& sample : samples) {
    if (sample.iteration_us > 0 && sample.gpu_us < options.most_gpu_share * sample.iteration_us)
      used.push_back(&sample);
  }
  if (used.empty()) {
    return Error{"there are no iterations that the host bounds", "", "give files of run records of small models"};
  }
  HostRegression fit{.samples = used.size()};
  fit.constants = constants_of(kRough, first_scale(used, options));
  Vector costs = kRough;
  for (int round = 0; round < kScaleRounds; ++round) {
    costs = fit_costs(rows_of(used, fit.constants), options.strength);
    fit.constants = constants_of(costs, fit.constants.scale);
    fit.constants.scale = calibrate_host_scale(used, fit.constants, options);
  }
  fit.constants = constants_of(levelled(used, costs, fit.constants.scale), fit.constants.scale);
  fit.constants.scale = calibrate_host_scale(used, fit.constants, options);
  drop_weightless(fit.constants.scale);
  fit.error = mean_error(used, fit.constants);
  return fit;
}

Result<std::vector<HeldOutFamily>> hold_out_families(std::span<const HostSample> samples,
                                                     const HostRegressionOptions& options) {
  std::set<std::string> families;
  for (const HostSample& sample : samples) families.insert(sample.family);
  std::vector<HeldOutFamily> rows;
  for (const std::string& family : families) {
    std::vector<HostSample> others;
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(others),
                 [&](const HostSample& sample) { return sample.family != family; });
    const Result<HostRegression> fit = calibrate_host_costs(others, options);
    if (!fit) return fit.error();
    HeldOutFamily row{.family = family};
    for (const HostSample& sample : samples) {
      if (sample.family != family) continue;
      const double error = predicted_us(sample, fit->constants) / sample.iteration_us - 1;
      ++row.samples;
      row.error += std::abs(error);
      row.bias += error;
    }
    row.error /= static_cast<double>(row.samples);
    row.bias /= static_cast<double>(row.samples);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace forerun
