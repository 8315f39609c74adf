#include "testbed/host_rates.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

namespace forerun::scale {
namespace {

TEST(HostRates, FoundFromPhases) {
  std::vector<MeasuredPhases> phases;
  for (int i = 1; i <= 12; ++i) {
    MeasuredPhases p;
    p.bytes = 1e7 * i;
    p.servers = 1 + i % 2;
    p.workers = 2 + 2 * (i % 3);
    p.sync = i % 4 != 0;
    p.bits_per_second = 10e9;
    const double slice = p.bytes / static_cast<double>(p.servers);
    const auto n = static_cast<double>(p.workers);
    p.to_host = 1e3 * (0.0005 + p.bytes / 12e9);
    p.server_update = 1e3 * (n * slice / 5e9 + (p.sync ? 1 : n) * slice / 3e9);
    p.exchange = p.server_update + 1e3 * 8 * 2 * std::max(1.0, n / static_cast<double>(p.servers)) * p.bytes / 9e9;
    p.compute = 30;
    p.simulated_compute = 25;
    phases.push_back(p);
  }
  const HostRates rates = fit_host_rates(phases, {});
  EXPECT_NEAR(rates.copy_bytes_per_second, 12e9, 1e7);
  EXPECT_NEAR(static_cast<double>(rates.message.value), 500'000, 1000);
  EXPECT_NEAR(rates.server_bytes_per_second, 5e9, 5e7);
  EXPECT_NEAR(rates.update_bytes_per_second, 3e9, 5e7);
  EXPECT_NEAR(rates.link_share, 0.9, 0.001);
  EXPECT_NEAR(rates.compute_factor, 1.2, 1e-9);
  EXPECT_EQ(rates.gpu_factor, 1);  // nothing told
}

TEST(HostRates, TrafficAndOptimizersFoundFromPhases) {
  const std::array<double, 4> more = {0.5, 3, 1, 1.5};  // momentum to adamw
  std::vector<MeasuredPhases> phases;
  for (int i = 0; i < 60; ++i) {
    MeasuredPhases p;
    p.bytes = 1e7 * (1 + i % 7);
    p.tensors = 10 + 17 * (i % 5);
    p.servers = 1;
    p.workers = 2 + 2 * (i % 2);
    p.optimizer = static_cast<ServerOptimizer>(i % 5);
    p.to_host = p.to_device = 0.2 + 0.003 * p.tensors + 1e3 * p.bytes / 40e9;
    const auto n = static_cast<double>(p.workers);
    const double step = i % 5 == 0 ? 0 : more[static_cast<size_t>(i % 5 - 1)];
    p.server_update = 1e3 * (p.bytes / 2e9 + (n + step) * p.bytes / 10e9);
    p.traffic = {1.0 + i % 3, 2.0 + i % 4, 5.0 + i % 11};
    p.traffic.back() = 1;
    p.computing = 50;
    p.gpu = 80;
    p.memory = 100 * n / 50 * (3 * p.traffic[0] + 2 * p.traffic[1] + 0.7 * p.traffic[2]);
    phases.push_back(p);
  }
  const HostRates rates = fit_host_rates(phases, {});
  EXPECT_NEAR(rates.copy_tensor_us, 3, 0.01);
  EXPECT_NEAR(rates.copy_bytes_per_second, 40e9, 1e8);
  EXPECT_NEAR(rates.server_bytes_per_second, 10e9, 1e8);
  EXPECT_NEAR(rates.update_bytes_per_second, 2e9, 2e7);
  for (size_t i = 0; i < more.size(); ++i) EXPECT_NEAR(rates.optimizer_passes[i + 1], more[i], 0.02);
  EXPECT_NEAR(rates.traffic[0], 3, 0.02);
  EXPECT_NEAR(rates.traffic[1], 2, 0.02);
  EXPECT_NEAR(rates.traffic[2], 0.7, 0.01);
  EXPECT_NEAR(rates.traffic.back(), 0, 0.05);
}

TEST(HostRates, NothingMeasuredChangesNothing) {
  const HostRates first;
  EXPECT_EQ(to_json(fit_host_rates({}, first), "s"), to_json(first, "s"));
}

TEST(HostRates, ReadsWhatItWrites) {
  HostRates rates;
  rates.copy_bytes_per_second = 7e9;
  rates.message = Nanoseconds(123'000);
  rates.linger = 0.25;
  rates.optimizer_passes[2] = 3;
  rates.traffic.back() = 4;
  rates.sharing["P1w2-10G sync"] = {7, 1e6};
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "host_rates.json";
  std::ofstream(file) << to_json(rates, "a test");
  const auto read = read_host_rates(file);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(to_json(*read, "a test"), to_json(rates, "a test"));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace forerun::scale
