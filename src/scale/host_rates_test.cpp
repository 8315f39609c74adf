#include "scale/host_rates.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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

TEST(HostRates, NothingMeasuredChangesNothing) {
  const HostRates first;
  EXPECT_EQ(to_json(fit_host_rates({}, first), "s"), to_json(first, "s"));
}

TEST(HostRates, ReadsWhatItWrites) {
  HostRates rates;
  rates.copy_bytes_per_second = 7e9;
  rates.message = Nanoseconds(123'000);
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "host_rates.json";
  std::ofstream(file) << to_json(rates, "a test");
  const auto read = read_host_rates(file);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(to_json(*read, "a test"), to_json(rates, "a test"));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace forerun::scale
