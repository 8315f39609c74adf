#include "scale/whole_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forerun::scale {
namespace {

constexpr double kRateSpread = 2;    // failures may come half or twice as often
constexpr double kNeverEnds = 1000;  // times as long as without failures: nobody waits for that

// The normal distribution's quantile, found by halving; exact to about 1e-9.
double normal_quantile(double share) {
  double low = -40, high = 40;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2)) < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Hours between checkpoints that lose least, of what writing one and the mean time to failure take.
double best_interval(double write, double mttf) {
  if (write <= 0) return 0;
  if (write >= 2 * mttf) return mttf;
  const double ratio = write / (2 * mttf);
  return std::sqrt(2 * write * mttf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - write;
}

struct Stops {
  double mttf, restart, write, interval;  // hours
};

// Daly's equation for the time to solution.
double hours_with(const Stops& s, double hours) {
  if (s.interval <= 0) return hours * std::exp(s.restart / s.mttf);
  return s.mttf * std::exp(s.restart / s.mttf) * std::expm1((s.interval + s.write) / s.mttf) * hours / s.interval;
}

}  // namespace

double largest_deviation(int64_t draws, double share) {
  return normal_quantile(std::pow(share, 1 / static_cast<double>(std::max<int64_t>(draws, 1))));
}

WholeRun whole_run(const RunLoad& load, const RunRisks& risks) {
  const auto gpus = static_cast<double>(load.gpus);
  const double storage = risks.storage_rate.value_or(kUsualStorageRate * static_cast<double>(load.nodes));
  Stops stops{.mttf = risks.mttf_hours.value_or(kUsualMttfHours) / gpus,
              .restart = risks.restart_minutes.value_or(kUsualRestartMinutes) / 60,
              .write = static_cast<double>(load.state.value) / storage / 3600,
              .interval = 0};
  stops.interval = std::min(best_interval(stops.write, stops.mttf), std::max(load.hours, 1e-9));
  const auto slowed = [&](double share) {
    return 1 + risks.spread * std::max(0.0, largest_deviation(load.gpus, share));
  };
  const auto hours_of = [&](double often, double share) {
    Stops here = stops;
    here.mttf /= often;
    const double hours = hours_with(here, load.hours * (1 + load.busy * (slowed(share) - 1)));
    return hours <= kNeverEnds * load.hours ? hours : std::numeric_limits<double>::infinity();
  };
  WholeRun run;
  run.hours = hours_of(1, 0.5);
  run.low_hours = hours_of(1 / kRateSpread, 0.1);
  run.high_hours = hours_of(kRateSpread, 0.9);
  run.goodput = run.hours > 0 ? load.hours / run.hours : 1;
  run.mttf_hours = stops.mttf;
  run.failures = run.hours / stops.mttf;
  run.checkpoint_seconds = stops.write * 3600;
  run.interval_minutes = stops.interval * 60;
  run.slowdown = slowed(0.5);
  return run;
}

}  // namespace forerun::scale
