#include "monitor/recording.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>

#include "monitor/child_group.h"
#include "monitor/clock.h"
#include "monitor/net_counters.h"

namespace forerun::monitor {
namespace {

struct Readings {
  std::vector<CounterReading> sent, received;
  std::vector<GpuReading> gpu;
};

Result<NetCounters> counters_of(const RecordingOptions& options) {
  if (!options.network_namespace.empty()) return NetCounters::of_namespace(options.network_namespace);
  return options.pid > 0 ? NetCounters::of_process(options.pid) : NetCounters::of_self();
}

Status check_interface(NetCounters& counters, const std::string& interface) {
  if (interface.empty()) return {};
  std::string known;
  for (const InterfaceBytes& row : counters.read()) {
    if (row.name == interface) return {};
    known += (known.empty() ? "" : ", ") + row.name;
  }
  return Error{"there is no network interface " + interface, "--interface", "there are: " + known};
}

double thread_cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

void sleep_until(int64_t ns) {
  const timespec at{ns / 1'000'000'000, ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

Series gpu_series(const std::vector<GpuReading>& readings, double GpuReading::*field, int64_t begin, int64_t end,
                  int64_t period) {
  std::vector<CounterReading> levels;
  for (const GpuReading& reading : readings) {
    if (levels.empty() || reading.ns > levels.back().ns) levels.push_back({reading.ns, reading.*field});
  }
  return level_series(levels, begin, end, period);
}

void read_network(NetCounters& counters, const std::string& interface, Readings& readings) {
  const int64_t before = monotonic_ns();
  const InterfaceBytes total = total_of(counters.read(), interface);
  const int64_t ns = before + (monotonic_ns() - before) / 2;
  readings.sent.push_back({ns, static_cast<double>(total.sent)});
  readings.received.push_back({ns, static_cast<double>(total.received)});
}

Status check_options(const RecordingOptions& options) {
  if (!(options.hz >= 1 && options.hz <= 2000)) return Error{"--hz is from 1 to 2000", "", ""};
  if (!(options.gpu_hz >= 1 && options.gpu_hz <= options.hz)) return Error{"--gpu-hz is from 1 to --hz", "", ""};
  if (!(options.seconds >= 0 && options.seconds <= 1e9)) return Error{"--seconds is from 0 to 1e9", "", ""};
  if (options.command.empty() && !(options.seconds > 0)) {
    return Error{"nothing to monitor", "", "give a command after -- or a time by --seconds"};
  }
  return {};
}

double gpu_rate(const RecordingOptions& options, GpuSource source) {
  constexpr double kMostOfCostly = 10;
  return source == GpuSource::kRates ? options.gpu_hz : std::min(options.gpu_hz, kMostOfCostly);
}

// The sampling of one recording.
class SamplingLoop {
 public:
  SamplingLoop(const RecordingOptions& options, NetCounters counters, std::optional<Gpu> gpu, GpuSource source)
      : options_(options),
        counters_(std::move(counters)),
        gpu_(std::move(gpu)),
        source_(source),
        period_(static_cast<int64_t>(1e9 / options.hz)),
        gpu_every_(std::max<int64_t>(1, std::llround(options.hz / gpu_rate(options, source)))) {}

  // Reads until the command (null: none) ends, the time is up or the user stops it.
  void run(ChildGroup* command) {
    const double cpu_before = thread_cpu_seconds();
    begin_ = monotonic_ns();
    const int64_t limit = options_.seconds > 0 ? begin_ + static_cast<int64_t>(options_.seconds * 1e9) : INT64_MAX;
    int64_t next = begin_;
    for (int64_t tick = 0;; ++tick) {
      read_network(counters_, options_.interface, readings_);
      if (gpu_ && tick % gpu_every_ == 0) gpu_->read(source_, readings_.gpu);
      if (command != nullptr && options_.pause != nullptr && options_.pause->exchange(false)) command->pause();
      const bool ended = command != nullptr && command->poll();
      const bool signalled = options_.signal != nullptr && options_.signal->load() != 0;
      const bool stopped = signalled || options_.stop.stop_requested();
      const int64_t now = monotonic_ns();
      if (stopped || now >= limit || ended) break;
      next += period_ * std::max<int64_t>(1, (now - next) / period_);  // what was slept through is not made up for
      sleep_until(std::min(next, limit));
    }
    end_ = readings_.sent.back().ns;
    cpu_seconds_ = thread_cpu_seconds() - cpu_before;
  }

  void write(Recording& recording) const {
    recording.seconds = static_cast<double>(end_ - begin_) * 1e-9;
    recording.cpu_share = cpu_seconds_ / std::max(1e-9, recording.seconds);
    recording.send = rate_series(readings_.sent, begin_, end_, period_);
    recording.receive = rate_series(readings_.received, begin_, end_, period_);
    if (source_ == GpuSource::kNone || readings_.gpu.empty()) return;
    const int64_t first = std::max(begin_, readings_.gpu.front().ns), step = period_ * gpu_every_;
    recording.gpu = gpu_series(readings_.gpu, &GpuReading::gpu, first, end_, step);
    recording.memory = gpu_series(readings_.gpu, &GpuReading::memory, first, end_, step);
  }

 private:
  const RecordingOptions& options_;
  NetCounters counters_;
  std::optional<Gpu> gpu_;
  GpuSource source_;
  int64_t period_, gpu_every_;
  int64_t begin_ = 0, end_ = 0;
  double cpu_seconds_ = 0;
  Readings readings_;
};

}  // namespace

Result<Recording> record(const RecordingOptions& options) {
  if (const Status checked = check_options(options); !checked) return checked.error();
  auto counters = counters_of(options);
  if (!counters) return counters.error();
  if (const Status known = check_interface(*counters, options.interface); !known) return known.error();
  Recording recording;
  recording.command = options.command;
  recording.interface = options.interface;
  std::optional<Gpu> gpu;
  if (auto opened = Gpu::open(options.gpu); opened) {
    gpu = std::move(*opened);
    recording.gpu_model = gpu->model();
    recording.driver = gpu->driver();
    recording.source = options.source;
    std::vector<GpuReading> first;
    if (!gpu->read(options.source, first)) {
      recording.source = GpuSource::kNone;
      recording.gpu_missing = "this GPU or its driver has no " + name(options.source);
    }
  } else {
    recording.gpu_missing = opened.error().message();
  }
  std::optional<ChildGroup> command;
  if (!options.command.empty()) {
    auto started = ChildGroup::start(options.command);
    if (!started) return started.error();
    command.emplace(std::move(*started));
  }
  SamplingLoop loop(options, std::move(*counters), std::move(gpu), recording.source);
  loop.run(command ? &*command : nullptr);
  const int signal = options.signal == nullptr ? 0 : options.signal->load();
  if (!command) {
    recording.exit_code = signal == 0 ? 0 : 128 + signal;
  } else if (const auto code = command->poll(); code && signal == 0) {
    recording.exit_code = *code;
  } else {
    recording.exit_code = command->end(signal == 0 ? SIGTERM : signal, kGraceSeconds, options.signal);
  }
  loop.write(recording);
  return recording;
}

}  // namespace forerun::monitor
