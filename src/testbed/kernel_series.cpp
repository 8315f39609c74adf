#include "testbed/kernel_series.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace forerun::scale {
namespace {

double traffic_seconds(const Traffic& traffic, const HostRates& host) {
  double sum = 0;
  for (size_t kind = 0; kind + 1 < traffic.size(); ++kind) sum += host.traffic[kind] * traffic[kind];
  return sum * host.memory_factor;
}

// Steps of a window, to which stretches of time give what they hold evenly.
class Steps {
 public:
  Steps(double begin, double end, double step)
      : begin_(begin),
        step_(step),
        sums_(static_cast<size_t>(std::max(0.0, std::floor((end - begin) / step + 1e-9)))) {}

  void add(double from, double to, double amount) {
    if (!(to > from) || amount == 0) return;
    const double first = std::max(0.0, (from - begin_) / step_);
    const double last = std::min(static_cast<double>(sums_.size()), (to - begin_) / step_);
    const double density = amount * step_ / (to - from);
    for (auto bin = static_cast<size_t>(first); static_cast<double>(bin) < last; ++bin) {
      const double covered = std::min(last, static_cast<double>(bin) + 1) - std::max(first, static_cast<double>(bin));
      if (covered > 0) sums_[bin] += density * covered;
    }
  }
  [[nodiscard]] const std::vector<double>& sums() const { return sums_; }

 private:
  double begin_, step_;
  std::vector<double> sums_;
};

// The course of one worker's computation as kernel_series needs it.
struct Course {
  std::vector<double> use;      // of the GPU, alone
  std::vector<double> traffic;  // seconds at the memory's bandwidth
};

Course course_of(const WorkerLoad& load, const HostRates& host, double use_alone) {
  if (load.slices.empty()) return {{use_alone}, {traffic_seconds(load.traffic, host)}};
  double mean = 0;
  for (const LoadSlice& slice : load.slices) mean += slice.busy / static_cast<double>(load.slices.size());
  Course course;
  for (const LoadSlice& slice : load.slices) {
    course.use.push_back(mean > 0 ? std::min(1.0, slice.busy * use_alone / mean) : use_alone);
    course.traffic.push_back(traffic_seconds(slice.traffic, host));
  }
  return course;
}

void add_computation(const ComputeSpan& span, const Course& course, Steps& held, Steps& moved) {
  const auto count = static_cast<double>(course.use.size());
  const double length = span.to - span.from;
  if (!(length > 0)) return;
  const auto time_of = [&](double share) {
    return span.begin + (share - span.from) / length * (span.end - span.begin);
  };
  const auto last = std::min(course.use.size(), static_cast<size_t>(std::ceil(span.to * count)));
  for (auto i = static_cast<size_t>(span.from * count); i < last; ++i) {
    const double from = std::max(span.from, static_cast<double>(i) / count);
    const double to = std::min(span.to, static_cast<double>(i + 1) / count);
    const double begin = time_of(from), end = time_of(to);
    const double use = course.use[i];
    held.add(begin, end, use > 0 ? (end - begin) * use / (use + (1 - use) * span.pace) : 0);
    moved.add(begin, end, course.traffic[i] * (to - from) * count);
  }
}

void add_copy(const CopySpan& copy, const WorkerLoad& load, const HostRates& host, Steps& held, Steps& moved) {
  double bytes = 0;
  for (const LayerLoad& layer : load.layers) bytes += static_cast<double>(layer.gradient.value);
  double busy = copy.share * bytes / host.copy_bytes_per_second;
  double traffic = copy.share * host.traffic.back() * load.traffic.back() * host.memory_factor / 2;
  if (copy.with_update) {
    busy += static_cast<double>(load.update.value) * 1e-9;
    traffic += load.update_traffic;
  }
  held.add(copy.begin, copy.end, std::min(busy, copy.end - copy.begin));
  moved.add(copy.begin, copy.end, traffic);
}

}  // namespace

KernelSeries kernel_series(const TrainingEvents& events, const WorkerLoad& load, const HostRates& host, double begin,
                           double end, double step) {
  const Course course = course_of(load, host, events.use_alone);
  std::map<size_t, Steps> held;   // by worker: seconds in which it has a kernel or a copy on the GPU
  Steps moved(begin, end, step);  // seconds at the memory's bandwidth
  const auto held_by = [&](size_t worker) -> Steps& {
    return held.try_emplace(worker, begin, end, step).first->second;
  };
  for (const ComputeSpan& span : events.computing) {
    if (span.end > begin && span.begin < end) add_computation(span, course, held_by(span.worker), moved);
  }
  for (const CopySpan& copy : events.copying) {
    if (copy.end > begin && copy.begin < end) add_copy(copy, load, host, held_by(copy.worker), moved);
  }
  const int64_t period = std::llround(step * 1e9);
  KernelSeries series{{period, {}}, {period, {}}};
  for (size_t bin = 0; bin < moved.sums().size(); ++bin) {
    double none = 1;
    for (const auto& [worker, seconds] : held) none *= 1 - std::min(1.0, seconds.sums()[bin] / step);
    series.gpu.values.push_back(100 * (1 - none));
    series.memory.values.push_back(std::min(100.0, 100 * moved.sums()[bin] / step));
  }
  return series;
}

}  // namespace forerun::scale
