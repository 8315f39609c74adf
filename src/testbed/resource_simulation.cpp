#include "testbed/resource_simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "testbed/kernel_series.h"
#include "testbed/training_events.h"

namespace forerun::scale {
namespace {

// As in the testbed: what counts as idle, and gaps in traffic that belong to the burst around them; iterations of a window.
constexpr double kGpuFloor = 1, kMemoryFloor = 0.2, kLinkFloor = 0.01, kLeastIdleMs = 10, kLeastKernelIdleMs = 5;
constexpr int64_t kLeastIterations = 4, kMostIterations = 400;
constexpr int64_t kTriedIterations = 2;  // by which the testbed counts how many fill a window

double seconds_of(Nanoseconds time) { return static_cast<double>(time.value) * 1e-9; }
Nanoseconds as_nanoseconds(double seconds) { return Nanoseconds(std::llround(seconds * 1e9)); }

// The mean of a level over each step of the window.
template <class Level>
monitor::Series binned(const std::vector<Stretch>& stretches, double begin, double end, double step, Level level) {
  monitor::Series series{std::llround(step * 1e9), {}};
  const auto count = static_cast<size_t>(std::max(0.0, std::floor((end - begin) / step + 1e-9)));
  series.values.assign(count, 0);
  for (const Stretch& s : stretches) {
    const double value = level(s);
    if (value == 0) continue;
    const double from = std::max(s.begin - begin, 0.0);
    const double to = s.end - begin;
    for (auto bin = static_cast<size_t>(from / step); bin < count && static_cast<double>(bin) * step < to; ++bin) {
      const double first = static_cast<double>(bin) * step;
      const double covered = std::min(to, first + step) - std::max(from, first);
      if (covered > 0) series.values[bin] += value * covered / step;
    }
  }
  return series;
}

// Seconds of a window in which anyone computes, and in which the GPU counts as busy.
struct GpuTime {
  double computing = 0;
  double busy = 0;
};

GpuTime gpu_time(const std::vector<Stretch>& stretches, double begin, double end) {
  GpuTime time;
  for (const Stretch& s : stretches) {
    const double length = std::min(s.end, end) - std::max(s.begin, begin);
    if (length <= 0 || !s.computing) continue;
    time.busy += s.gpu * length;
    time.computing += length;
  }
  return time;
}

// How many iterations fill the window.
int64_t iterations_of_window(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host,
                             double window) {
  const TrainingEvents tried = training_events(load, setting, host, {.iterations = kTriedIterations});
  double slowest = 1e-6;
  for (const std::vector<double>& begins : tried.begins) {
    slowest = std::max(slowest, begins[kTriedIterations] - begins[kTriedIterations - 1]);
  }
  return std::clamp(static_cast<int64_t>(std::ceil(window / slowest)), kLeastIterations, kMostIterations);
}

struct SeenWindow {
  const WorkerLoad& load;
  const ResourceSetting& setting;
  const HostRates& host;
  const TrainingEvents& events;
  int64_t first, last;  // iterations
  double step;          // seconds, of the series
  double kernel_step;

  [[nodiscard]] ResourceUse use() const;
};

ResourceUse SeenWindow::use() const {
  const auto from = static_cast<size_t>(first);
  const auto to = static_cast<size_t>(last);
  const auto workers = static_cast<double>(events.begins.size());
  const double iterations = static_cast<double>(last - first);
  double begin = 0;
  double end = std::numeric_limits<double>::infinity();
  double computed = 0;
  for (size_t w = 0; w < events.begins.size(); ++w) {
    begin = std::max(begin, events.begins[w][from]);
    end = std::min(end, events.begins[w][to]);
    for (size_t i = from; i < to; ++i) computed += events.computed[w][i] - events.begins[w][i];
  }
  const double iteration = (events.begins[0][to] - events.begins[0][from]) / iterations;
  const GpuTime time = gpu_time(events.stretches, begin, end);
  // Worker-iterations of the window on one GPU, and what each adds beside its computation.
  const double rounds = (end - begin) / iteration;
  const double shares = setting.shared_gpu ? workers : 1;
  const double copies = rounds * shares * host.copy_use * 2 * events.copy_seconds;
  double traffic = setting.servers == 0 ? load.update_traffic : 0;
  for (size_t i = 0; i < load.traffic.size(); ++i) traffic += host.traffic[i] * load.traffic[i];
  const auto percent = [&](double seconds) {
    return time.computing > 0 ? std::min(100.0, 100 * seconds / time.computing) : 0;
  };
  const double level = percent(time.busy + copies);
  const double memory = percent(rounds * shares * traffic * host.memory_factor);
  ResourceUse use;
  use.iteration = as_nanoseconds(iteration);
  use.compute = as_nanoseconds(computed / workers / iterations);
  use.computing = as_nanoseconds(rounds > 0 ? time.computing / rounds : 0);
  const auto series = [&](auto value) { return binned(events.stretches, begin, end, step, value); };
  use.clocks = {
      monitor::burst_metrics(series([&](const Stretch& s) { return s.computing ? level : 0; }), kGpuFloor),
      monitor::burst_metrics(series([&](const Stretch& s) { return s.computing ? memory : 0; }), kMemoryFloor)};
  KernelSeries kernels = kernel_series(events, load, host, begin, end, kernel_step);
  use.series = {std::move(kernels.gpu), std::move(kernels.memory), series([](const Stretch& s) { return s.send; }),
                series([](const Stretch& s) { return s.receive; })};
  const double floor = kLinkFloor * setting.bits_per_second / 8;
  use.metrics = {monitor::burst_metrics(use.series[0], kGpuFloor, kLeastKernelIdleMs),
                 monitor::burst_metrics(use.series[1], kMemoryFloor, kLeastKernelIdleMs),
                 monitor::burst_metrics(use.series[2], floor, kLeastIdleMs),
                 monitor::burst_metrics(use.series[3], floor, kLeastIdleMs)};
  for (const size_t network : {2, 3}) {
    use.metrics[network].amount *= 1e-6;
    use.metrics[network].mean *= 1e-6;
    use.metrics[network].threshold *= 1e-6;
  }
  return use;
}

// Times and figures are means over the windows; the rest is the last one's.
ResourceUse averaged(std::vector<ResourceUse> windows) {
  ResourceUse mean = std::move(windows.back());
  windows.pop_back();
  const auto count = static_cast<double>(windows.size() + 1);
  const auto average = [&](auto figure) {
    double sum = figure(mean);
    for (const ResourceUse& window : windows) sum += figure(window);
    return sum / count;
  };
  const auto average_time = [&](Nanoseconds ResourceUse::*time) {
    return Nanoseconds(
        std::llround(average([&](const ResourceUse& u) { return static_cast<double>((u.*time).value); })));
  };
  mean.iteration = average_time(&ResourceUse::iteration);
  mean.compute = average_time(&ResourceUse::compute);
  mean.computing = average_time(&ResourceUse::computing);
  for (double monitor::BurstMetrics::*figure :
       {&monitor::BurstMetrics::idle_ms, &monitor::BurstMetrics::burst_ms, &monitor::BurstMetrics::amount,
        &monitor::BurstMetrics::mean, &monitor::BurstMetrics::threshold}) {
    for (size_t r = 0; r < mean.metrics.size(); ++r) {
      mean.metrics[r].*figure = average([&](const ResourceUse& u) { return u.metrics[r].*figure; });
    }
    for (size_t r = 0; r < mean.clocks.size(); ++r) {
      mean.clocks[r].*figure = average([&](const ResourceUse& u) { return u.clocks[r].*figure; });
    }
  }
  return mean;
}

}  // namespace

ResourceUse simulate_resources(const WorkerLoad& load, const ResourceSetting& setting, const HostRates& host,
                               const SimulationOptions& options) {
  CHECK(options.iterations >= 0 && options.warm_iterations >= 0 && options.windows >= 1, "iterations are counted");
  const int64_t iterations = options.iterations > 0
                                 ? options.iterations
                                 : iterations_of_window(load, setting, host, seconds_of(options.window));
  const int64_t last = options.warm_iterations + iterations;
  // Where nothing varies one window is as good as many.
  const int64_t windows = host.jitter > 0 ? options.windows : 1;
  std::vector<ResourceUse> seen;
  for (int64_t i = 0; i < windows; ++i) {
    const TrainingEvents events =
        training_events(load, setting, host, {.iterations = last, .seed = static_cast<uint64_t>(i) + 1});
    seen.push_back(SeenWindow{load, setting, host, events, options.warm_iterations, last, seconds_of(options.step),
                              seconds_of(options.kernel_step)}
                       .use());
  }
  return averaged(std::move(seen));
}

}  // namespace forerun::scale
