#include "testbed/resource_simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "testbed/fair_share.h"

namespace forerun::scale {
namespace {

constexpr double kMs = 1e6;
constexpr double kMegabytes = 100;

WorkerLoad two_layers() {
  WorkerLoad load;
  load.layers = {{Nanoseconds(5'000'000), Nanoseconds(15'000'000), Bytes(60'000'000)},
                 {Nanoseconds(5'000'000), Nanoseconds(15'000'000), Bytes(40'000'000)}};
  load.traffic[2] = 0.016;  // seconds: 40 % of the computation
  return load;
}

// Hosts that take no time, so that links and GPUs decide.
HostRates free_hosts() { return {1e18, 1e18, 1e18, 1, 1e18, Nanoseconds()}; }

ResourceSetting setting_of(const char* name) {
  const auto setting = resource_setting(name);
  EXPECT_TRUE(setting) << name;
  return *setting;
}

double iteration_ms(const ResourceSetting& setting, const HostRates& host = free_hosts()) {
  const SimulationOptions settled{.warm_iterations = 2, .iterations = 40};
  return milliseconds(simulate_resources(two_layers(), setting, host, settled).iteration);
}

TEST(FairShare, NoLinkCarriesTooMuchAndEachTransferHasAFullOne) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const size_t nodes = 2 + random() % 6;
    std::vector<Transfer> transfers;
    for (size_t i = 0; i < 1 + random() % 12; ++i) transfers.push_back({random() % nodes, random() % nodes});
    const std::vector<double> rates = fair_rates(transfers, nodes, 10);
    std::vector<double> load(2 * nodes);
    for (size_t i = 0; i < transfers.size(); ++i) {
      load[transfers[i].from] += rates[i];
      load[nodes + transfers[i].to] += rates[i];
    }
    for (const double carried : load) EXPECT_LE(carried, 10 + 1e-9);
    for (size_t i = 0; i < transfers.size(); ++i) {
      // A link that is full, and where nobody has more.
      bool held_back = false;
      for (const size_t end : {transfers[i].from, nodes + transfers[i].to}) {
        bool most = load[end] > 10 - 1e-9;
        for (size_t j = 0; j < transfers.size(); ++j) {
          if ((transfers[j].from == end || nodes + transfers[j].to == end) && rates[j] > rates[i] + 1e-9) most = false;
        }
        held_back |= most;
      }
      EXPECT_TRUE(held_back);
    }
  }
}

TEST(ResourceSimulation, OneWorkerIsASum) {
  const HostRates host{10e9, 5e9, 2e9, 0.5, 1e18, Nanoseconds(1'000'000)};
  const double b = kMegabytes * 1e6;
  const double expected = 40 + 2 * (1e3 * b / 10e9 + 1) + 1e3 * b / 5e9 + 1e3 * b / 2e9 + 2 * 1e3 * b / (0.5 * 1.25e9);
  EXPECT_NEAR(iteration_ms(setting_of("P1w1-10G"), host), expected, 0.01);
}

TEST(ResourceSimulation, LinksDecideAsTheirShareSays) {
  const double once = 1e3 * kMegabytes * 1e6 / 1.25e9;  // 80 ms
  ResourceSetting two = setting_of("P1w2-10G");
  two.shared_gpu = false;
  EXPECT_NEAR(iteration_ms(two), 40 + 4 * once, 0.01);  // both ways through the server's link, two workers
  ResourceSetting servers = setting_of("P2w2-10G");
  servers.shared_gpu = false;
  EXPECT_NEAR(iteration_ms(servers), 40 + 2 * once, 0.01);
  ResourceSetting ring = setting_of("AR4-10G");
  ring.shared_gpu = false;
  EXPECT_NEAR(iteration_ms(ring), 40 + 1.5 * once, 0.01);
}

TEST(ResourceSimulation, WorkersShareTheGpusTime) {
  const ResourceSetting shared = setting_of("P1w2-1000G");
  ResourceSetting own = shared;
  own.shared_gpu = false;
  EXPECT_NEAR(iteration_ms(shared) - iteration_ms(own), 40, 0.1);
  WorkerLoad half = two_layers();
  half.gpu_percent = 50;  // the host leaves room for two
  EXPECT_NEAR(static_cast<double>(simulate_resources(half, shared, free_hosts()).iteration.value) / kMs,
              iteration_ms(own), 0.1);
}

TEST(ResourceSimulation, AsynchronousWorkersDoNotWait) {
  ResourceSetting sync = setting_of("P1w4-10G");
  ResourceSetting async = sync;
  async.sync = false;
  EXPECT_LT(iteration_ms(async), iteration_ms(sync));
  // The server's link is what they share: four workers' bytes one way take 320 ms.
  EXPECT_GT(iteration_ms(async), 319);
}

TEST(ResourceSimulation, OverlapHidesTransfers) {
  ResourceSetting setting = setting_of("AR2-40G");
  setting.shared_gpu = false;
  const double after = iteration_ms(setting);
  setting.overlap = true;
  EXPECT_LT(iteration_ms(setting), after);
}

TEST(ResourceSimulation, SeriesHoldWhatWasSent) {
  const ResourceSetting setting = setting_of("P1w2-10G");
  const SimulationOptions options{.warm_iterations = 2, .iterations = 20};
  const ResourceUse use = simulate_resources(two_layers(), setting, free_hosts(), options);
  for (const size_t network : {2, 3}) {
    const monitor::Series& series = use.series[network];
    const double sum = std::accumulate(series.values.begin(), series.values.end(), 0.0) * 2.5e-3;
    EXPECT_NEAR(sum, 20 * kMegabytes * 1e6, 0.02 * 20 * kMegabytes * 1e6);
  }
  const monitor::BurstMetrics& gpu = use.metrics[0];
  EXPECT_EQ(gpu.pattern, monitor::Pattern::kAlternating);
  EXPECT_NEAR(gpu.burst_ms, 80, 5);  // two workers at once on one GPU
  EXPECT_NEAR(gpu.idle_ms, 320, 5);
  EXPECT_NEAR(gpu.amount, 100, 3);
  EXPECT_NEAR(use.metrics[1].amount, 40, 2);
  EXPECT_NEAR(use.metrics[2].burst_ms, 160, 5);
  EXPECT_NEAR(use.metrics[2].amount, 625, 15);  // half of the server's link
}

TEST(FairShare, WeightsCountAsThatMany) {
  const std::vector<Transfer> transfers = {{0, 1, 3}, {0, 2}, {3, 2}};
  const std::vector<double> rates = fair_rates(transfers, 4, 8);
  EXPECT_NEAR(rates[0], 6, 1e-9);
  EXPECT_NEAR(rates[1], 2, 1e-9);
  EXPECT_NEAR(rates[2], 6, 1e-9);
}

HostRates shared_as(const char* setting, LinkSharing sharing) {
  HostRates host = free_hosts();
  host.sharing[setting] = sharing;
  return host;
}

TEST(ResourceSimulation, TransfersToAServerTakeTurns) {
  const ResourceSetting setting = setting_of("P1w2-1G");
  const ResourceUse fair = simulate_resources(two_layers(), setting, free_hosts(), {.iterations = 4});
  const HostRates host = shared_as("P1w2-1G sync", {1, 4e6});
  const ResourceUse turns = simulate_resources(two_layers(), setting, host, {.iterations = 4});
  // 4 megabytes are 32 ms: bursts and idles so long, at the full rate, in as much time.
  EXPECT_NEAR(turns.metrics[2].burst_ms, 32, 4);
  EXPECT_NEAR(turns.metrics[2].amount, 125, 8);
  EXPECT_GT(fair.metrics[2].burst_ms, 1000);
  EXPECT_NEAR(fair.metrics[2].amount, 62.5, 2);
  EXPECT_NEAR(milliseconds(turns.iteration), milliseconds(fair.iteration), 40);
}

TEST(ResourceSimulation, TheFirstAnswerGetsMoreAndItsWorkerComputesEarlier) {
  const ResourceSetting setting = setting_of("P1w2-10G");
  const ResourceUse fair = simulate_resources(two_layers(), setting, free_hosts());
  const ResourceUse first = simulate_resources(two_layers(), setting, shared_as("P1w2-10G sync", {9, 0}));
  EXPECT_NEAR(fair.metrics[3].amount, 625, 15);
  EXPECT_NEAR(first.metrics[3].amount, 0.9 * 1250, 30);
  // One computes after the other, alone on the GPU: twice the bursts, each half as long.
  EXPECT_NEAR(fair.metrics[0].burst_ms, 80, 5);
  EXPECT_NEAR(first.metrics[0].burst_ms, 40, 5);
}

TEST(ResourceSimulation, LinksMayFavourTheLastWorkerOrNobody) {
  const HostRates host = shared_as("P1w2-10G sync", {9, 0});
  ResourceSetting setting = setting_of("P1w2-10G");
  setting.links = LinkState::even;
  const ResourceUse even = simulate_resources(two_layers(), setting, host);
  EXPECT_EQ(even.metrics[3].amount, simulate_resources(two_layers(), setting, free_hosts()).metrics[3].amount);
  setting.links = LinkState::last;
  const ResourceUse last = simulate_resources(two_layers(), setting, host);
  // Worker 0 has a tenth of the link for 89 ms, which counts as idle, and then all of it for 71 ms.
  EXPECT_NEAR(last.metrics[3].burst_ms, 71, 4);
  EXPECT_NEAR(last.metrics[3].amount, 1250, 30);
  setting.links = LinkState::first;
  // To the GPU both are the same: one worker is ahead.
  EXPECT_NEAR(last.metrics[0].burst_ms, simulate_resources(two_layers(), setting, host).metrics[0].burst_ms, 3);
}

TEST(ResourceSimulation, TheHeadOfTheFirstAnswerGoesAlone) {
  ResourceSetting setting = setting_of("P1w2-10G");
  setting.shared_gpu = false;
  // 25 megabytes in 20 ms alone, the other 75 shared in 120 ms: worker 1 has its parameters 20 ms after worker 0.
  const ResourceUse use = simulate_resources(two_layers(), setting, shared_as("P1w2-10G sync", {1, 0, 0, 25e6}));
  EXPECT_NEAR(use.metrics[3].burst_ms, 140, 4);
  EXPECT_NEAR(milliseconds(use.iteration), 40 + 160 + 160, 25);
}

TEST(ResourceSimulation, NodesThatSendAndReceiveAtOnceHaveLessOfTheirLinks) {
  HostRates host = free_hosts();
  host.duplex_share = 0.8;
  ResourceSetting ring = setting_of("AR4-10G");
  ring.shared_gpu = false;
  EXPECT_NEAR(iteration_ms(ring, host), 40 + 120 / 0.8, 0.01);
  ResourceSetting servers = setting_of("P1w2-10G");  // gradients first, then parameters
  servers.shared_gpu = false;
  EXPECT_NEAR(iteration_ms(servers, host), iteration_ms(servers), 0.01);
}

TEST(ResourceSimulation, WindowsAreFilledAsInTheTestbed) {
  ResourceSetting setting = setting_of("P1w2-10G");
  setting.shared_gpu = false;
  // An iteration takes 360 ms: five fill 1.6 s, and at least four are measured.
  const auto steps = [&](SimulationOptions options) {
    return simulate_resources(two_layers(), setting, free_hosts(), options).series[2].values.size();
  };
  EXPECT_EQ(steps({}), 5 * 144);
  EXPECT_EQ(steps({.window = Nanoseconds(1)}), 4 * 144);
}

TEST(ResourceSimulation, WhatVariesIsAveragedOverWindows) {
  HostRates host = free_hosts();
  host.jitter = 0.3;
  ResourceSetting setting = setting_of("P1w2-10G");
  setting.sync = false;
  const auto burst = [&](int64_t windows) {
    return simulate_resources(two_layers(), setting, host, {.windows = windows}).metrics[0].burst_ms;
  };
  EXPECT_NE(burst(1), burst(4));
  EXPECT_EQ(burst(4), burst(4));
}

// A worker whose answer came early may not send before the server's last answer is out.
TEST(ResourceSimulation, ASynchronousServerAnswersBeforeItTakesMore) {
  ResourceSetting setting = setting_of("P1w2-10G");
  setting.shared_gpu = false;
  const HostRates host = shared_as("P1w2-10G sync", {1e6, 0});
  // 80 ms for each answer; worker 0 has computed when the second is half done, and waits: it sends alone for 40 ms, then
  // both for 120 ms.
  EXPECT_NEAR(iteration_ms(setting, host), 80 + 80 + 40 + 120, 1);
}

TEST(ResourceSimulation, WorkersAtOnceSlowEachOtherAndKeepTheGpuBusy) {
  WorkerLoad load = two_layers();
  load.gpu_percent = 50;
  HostRates host = free_hosts();
  host.sharing_power = 2;
  const ResourceUse use = simulate_resources(load, setting_of("P1w2-10G"), host);
  EXPECT_NEAR(milliseconds(use.compute), 40 * std::sqrt(2.0), 0.1);
  EXPECT_NEAR(use.clocks[0].amount, 100 / std::sqrt(2.0), 3);
  // Each worker has a kernel there unless its host is between two, which lasts as long as alone.
  const double away = 1 - 0.5 / (0.5 + 0.5 / std::sqrt(2.0));
  EXPECT_NEAR(use.metrics[0].amount, 100 * (1 - away * away), 3);
  host.linger = 0.5;
  const ResourceUse busy = simulate_resources(load, setting_of("P1w2-10G"), host);
  EXPECT_NEAR(busy.clocks[0].amount, 100 * (1 - 0.5 * (1 - std::sqrt(0.5))), 3);
}

TEST(ResourceSimulation, ServersStepTheirOptimizer) {
  HostRates host = free_hosts();
  host.server_bytes_per_second = 1e9;
  host.optimizer_passes = {0, 0, 2, 0, 0};
  WorkerLoad load = two_layers();
  const ResourceSetting setting = setting_of("P1w1-10G");
  const double plain = milliseconds(simulate_resources(load, setting, host).iteration);
  load.optimizer = ServerOptimizer::rmsprop;
  EXPECT_NEAR(milliseconds(simulate_resources(load, setting, host).iteration) - plain, 200, 0.1);
}

TEST(ResourceSimulation, SettingsSayTheirNames) {
  for (const char* name : {"P1w2-10G", "P2w4-500M", "P1w2-2.5G"}) {
    ResourceSetting setting = setting_of(name);
    EXPECT_EQ(setting_name(setting), std::string(name) + " sync");
    setting.sync = false;
    EXPECT_EQ(setting_name(setting), std::string(name) + " async");
  }
  EXPECT_EQ(setting_name(setting_of("AR4-10G")), "AR4-10G allreduce");
}

TEST(ResourceSimulation, NamesOfSettings) {
  EXPECT_EQ(setting_of("P2w4-500M").servers, 2);
  EXPECT_EQ(setting_of("P2w4-500M").workers, 4);
  EXPECT_EQ(setting_of("P2w4-500M").bits_per_second, 500e6);
  EXPECT_EQ(setting_of("AR4-10G").servers, 0);
  for (const char* name :
       {"", "P", "P1", "P1w", "P1w2", "P1w2-", "P1w2-10", "P0w2-10G", "AR1-10G", "P1w2-10Gx", "Q1w2-10G"}) {
    EXPECT_FALSE(resource_setting(name)) << name;
  }
}

}  // namespace
}  // namespace forerun::scale
