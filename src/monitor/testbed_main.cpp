// forerun-testbed: what forerun.testbed (python/) needs from the kernel and the GPU's driver. Only the C++ library is needed,
// so that it builds on a bare GPU machine:
//   g++ -O2 -std=c++20 -Isrc $(ls src/monitor/*.cpp | grep -v _test) -o forerun-testbed -ldl -pthread
//
//   forerun-testbed run --rates 10G,10G,10G [--channels 5,6,7] [--routed] -- COMMAND...   nodes joined by shaped links
//   forerun-testbed traffic SECONDS          as a node: all others send to node 0, which prints what came
//   forerun-testbed sample --pids A,B [--hz 200] [--gpu-hz 10]   readings as lines until standard input ends
//   forerun-testbed metrics                  lines "PERIOD_NS FLOOR LEAST_IDLE_MS VALUE..." -> their bursts and idles, a JSON line each
//   forerun-testbed probe                    what this machine can do
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "monitor/clock.h"
#include "monitor/net_counters.h"
#include "monitor/netlink.h"
#include "monitor/node_group.h"
#include "monitor/nvml.h"
#include "monitor/series.h"
#include "monitor/traffic.h"

namespace forerun::monitor {
namespace {

int fail(const std::string& message, int code = 1) {
  std::fprintf(stderr, "forerun-testbed: %s\n", message.c_str());
  return code;
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The value of "--name VALUE" before any "--", or the default.
std::string option(const std::vector<std::string>& words, const std::string& name, const std::string& otherwise) {
  for (size_t i = 0; i + 1 < words.size() && words[i] != "--"; ++i) {
    if (words[i] == name) return words[i + 1];
  }
  return otherwise;
}

bool has_flag(const std::vector<std::string>& words, const std::string& name) {
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == name) return true;
  }
  return false;
}

int run_nodes(const std::vector<std::string>& words) {
  NodeGroupOptions options;
  for (const std::string& text : parts_of(option(words, "--rates", ""), ',')) {
    const auto rate = text == "0" ? Result<uint64_t>(0) : parse_rate(text);
    if (!rate) return fail(rate.error().message(), 2);
    options.rates.push_back(*rate);
  }
  for (const std::string& text : parts_of(option(words, "--channels", ""), ',')) {
    options.channels.push_back(std::atoi(text.c_str()));
  }
  options.routed = has_flag(words, "--routed");
  bool behind = false;
  for (const std::string& word : words) {
    if (behind) options.command.push_back(word);
    behind = behind || word == "--";
  }
  if (options.rates.empty() || options.command.empty()) return fail("run --rates A,B,... -- COMMAND", 2);
  if (!options.channels.empty() && options.channels.size() != options.rates.size()) {
    return fail("--channels has a descriptor for each node", 2);
  }
  die_with_parent(getppid());
  const auto group = start_nodes(options);
  if (!group) return fail(group.error().message());
  std::printf("{\"layout\":\"%s\",\"nodes\":[", group->layout.c_str());
  for (size_t i = 0; i < group->pids.size(); ++i) {
    std::printf("%s{\"pid\":%d,\"address\":\"%s\"}", i > 0 ? "," : "", group->pids[i], group->addresses[i].c_str());
  }
  std::printf("]}\n");
  std::fflush(stdout);
  return wait_nodes(*group);
}

int traffic(const std::vector<std::string>& words) {
  const std::vector<std::string> addresses = parts_of(variable("FORERUN_ADDRESSES"), ',');
  const int node = std::atoi(variable("FORERUN_NODE").c_str());
  if (addresses.size() < 2 || words.empty()) return fail("traffic SECONDS is for the nodes of `run`", 2);
  if (node != 0) {
    const Status sent = send_traffic(addresses[0], std::atof(words[0].c_str()));
    return sent ? 0 : fail(sent.error().message());
  }
  const auto received = receive_traffic(addresses[0], static_cast<int>(addresses.size()) - 1);
  if (!received) return fail(received.error().message());
  std::printf("{\"senders\":%zu,\"bytes\":%" PRIu64 ",\"seconds\":%.3f,\"gbit_s\":%.3f}\n", addresses.size() - 1,
              received->bytes, received->seconds, received->gigabits_per_second());
  return 0;
}

// Sleeps to the next whole multiple of the period; false once standard input has ended.
bool wait_until(int64_t ns) {
  while (true) {
    const int64_t left = ns - monotonic_ns();
    if (left <= 0) return true;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    timespec wait{left / 1'000'000'000, left % 1'000'000'000};
    if (ppoll(&input, 1, &wait, nullptr) > 0) {
      char text[64];
      if (::read(STDIN_FILENO, text, sizeof(text)) <= 0) return false;
    }
  }
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

void print_gpu(Gpu& gpu, GpuSource source) {
  std::vector<GpuReading> readings;
  gpu.read(source, readings);
  for (const GpuReading& reading : readings) {
    std::printf("g %" PRId64 " %.2f %.2f\n", reading.ns, reading.gpu, reading.memory);
  }
}

// Lines: "source NAME", then "n NS sent received sent received ..." (bytes, a pair for each pid) and "g NS gpu memory"
// (percent since the "g" line before), at the end "cpu SECONDS WALL".
int sample(const std::vector<std::string>& words) {
  signal(SIGPIPE, SIG_IGN);
  die_with_parent(getppid());
  const double hz = std::atof(option(words, "--hz", "200").c_str());
  const double gpu_hz = std::atof(option(words, "--gpu-hz", "10").c_str());
  if (!(hz >= 1 && hz <= 10'000) || !(gpu_hz >= 1 && gpu_hz <= hz)) return fail("--gpu-hz is from 1 to --hz", 2);
  std::vector<NetCounters> counters;
  for (const std::string& pid : parts_of(option(words, "--pids", ""), ',')) {
    auto opened = NetCounters::of_process(std::atoi(pid.c_str()));
    if (!opened) return fail(opened.error().message());
    counters.push_back(std::move(*opened));
  }
  auto gpu = Gpu::open(std::atoi(option(words, "--gpu", "0").c_str()));
  const GpuSource source = gpu ? gpu->best_source() : GpuSource::kNone;
  std::printf("source %s %s\n", name(source).c_str(), gpu ? gpu->model().c_str() : gpu.error().message().c_str());
  const auto period = static_cast<int64_t>(1e9 / hz);
  const auto gpu_every = std::max<int64_t>(1, static_cast<int64_t>(hz / gpu_hz + 0.5));
  const int64_t begin = monotonic_ns();
  for (int64_t tick = 0; wait_until(begin + tick * period); ++tick) {
    tick = std::max(tick, (monotonic_ns() - begin) / period);  // what was slept through is not made up for
    if (!counters.empty()) {
      std::printf("n %" PRId64, monotonic_ns());
      for (NetCounters& table : counters) {
        const InterfaceBytes total = total_of(table.read(), "");
        std::printf(" %" PRIu64 " %" PRIu64, total.sent, total.received);
      }
      std::printf("\n");
    }
    if (gpu && tick % gpu_every == 0) print_gpu(*gpu, source);
    if (tick % 8 == 0 && std::fflush(stdout) != 0) return 1;
  }
  std::printf("cpu %.4f %.4f\n", cpu_seconds(), static_cast<double>(monotonic_ns() - begin) * 1e-9);
  return 0;
}

int metrics() {
  for (std::string line; std::getline(std::cin, line);) {
    std::stringstream stream(line);
    Series series;
    double floor = 0, least_idle_ms = 0;
    if (!(stream >> series.period_ns >> floor >> least_idle_ms) || series.period_ns <= 0)
      return fail("a line is PERIOD_NS FLOOR LEAST_IDLE_MS VALUE...", 2);
    for (double value = 0; stream >> value;) series.values.push_back(value);
    const BurstMetrics found = burst_metrics(series, floor, least_idle_ms);
    std::printf(
        "{\"pattern\":\"%s\",\"idle_ms\":%.6g,\"burst_ms\":%.6g,\"amount\":%.6g,\"mean\":%.6g,\"threshold\":%.6g,"
        "\"bursts\":%zu,\"idles\":%zu}\n",
        name(found.pattern).c_str(), found.idle_ms, found.burst_ms, found.amount, found.mean, found.threshold,
        found.bursts, found.idles);
  }
  return 0;
}

void probe_gpu() {
  auto gpu = Gpu::open(0);
  if (!gpu) {
    std::printf("gpu: %s\n", gpu.error().message().c_str());
    return;
  }
  std::printf("gpu: %s, driver %s, gpm %s\n", gpu->model().c_str(), gpu->driver().c_str(),
              gpu->has_gpm() ? "yes" : "no");
  for (const GpuSource source : {GpuSource::kRates, GpuSource::kSamples, GpuSource::kGpm}) {
    std::vector<GpuReading> readings;
    gpu->read(source, readings);
    readings.clear();
    const int64_t begin = monotonic_ns();
    const double cpu_before = cpu_seconds();
    bool worked = true;
    for (int i = 0; i < 50; ++i) {
      usleep(10'000);
      worked = gpu->read(source, readings) && worked;
    }
    const double seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
    std::printf("gpu %s: %s, %zu readings in %.2f s of 50 calls, %.3f ms of CPU a call;", name(source).c_str(),
                worked ? "works" : "fails", readings.size(), seconds, (cpu_seconds() - cpu_before) * 20);
    for (size_t i = readings.size() > 8 ? readings.size() - 8 : 0; i < readings.size(); ++i) {
      std::printf(" [%.1f ms: %.1f %.1f]", static_cast<double>(readings[i].ns - begin) * 1e-6, readings[i].gpu,
                  readings[i].memory);
    }
    std::printf("\n");
  }
}

int probe() {
  utsname system{};
  uname(&system);
  std::printf("kernel: %s, uid %d, %ld processors\n", system.release, static_cast<int>(getuid()),
              sysconf(_SC_NPROCESSORS_ONLN));
  probe_gpu();
  NodeGroupOptions options;
  options.rates = {1'000'000'000, 1'000'000'000};
  options.command = {"true"};
  const auto group = start_nodes(options);  // this process is then in a namespace of its own
  if (!group) {
    std::printf("nodes: %s\n", group.error().message().c_str());
    return 1;
  }
  std::printf("nodes: namespaces, veth and tbf work; layout %s; exit code %d\n", group->layout.c_str(),
              wait_nodes(*group));
  return 0;
}

int testbed_main(const std::vector<std::string>& words) {
  const std::string verb = words.empty() ? "" : words[0];
  const std::vector<std::string> rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (verb == "run") return run_nodes(rest);
  if (verb == "traffic") return traffic(rest);
  if (verb == "sample") return sample(rest);
  if (verb == "metrics") return metrics();
  if (verb == "probe") return probe();
  return fail("run, traffic, sample, metrics or probe; see the head of testbed_main.cpp", 2);
}

}  // namespace
}  // namespace forerun::monitor

int main(int argc, char** argv) {
  const int code = forerun::monitor::testbed_main({argv + 1, argv + argc});
  if (std::ferror(stdout) == 0 && std::fflush(stdout) == 0) return code;
  std::fprintf(stderr, "forerun-testbed: standard output cannot be written\n");
  return code == 0 ? 1 : code;
}
