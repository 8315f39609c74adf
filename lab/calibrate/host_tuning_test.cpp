#include "lab/calibrate/host_tuning.h"

#include <gtest/gtest.h>

#include <vector>

namespace forerun::scale {
namespace {

TEST(HostTuning, ErrorsAreRelativeAndBounded) {
  BurstFigureTable measured = {};
  measured[0] = {10, 20, 0};  // the last is not known
  BurstFigureTable simulated = {};
  simulated[0] = {11, 200, 5};
  EXPECT_NEAR(figures_error(simulated, measured), (0.1 + 2) / 2, 1e-12);
  EXPECT_EQ(figures_error(simulated, {}), 0);
}

// Workloads that hosts with known constants would have given.
std::vector<MeasuredWorkload> tuned_workloads(const HostRates& truth) {
  std::vector<MeasuredWorkload> workloads;
  for (int i = 1; i <= 6; ++i) {
    MeasuredWorkload w;
    w.load.layers = {{Nanoseconds(4'000'000 * i), Nanoseconds(8'000'000 * i), Bytes(8'000'000 * (7 - i))}};
    w.load.gpu_percent = 100 - 12 * i;
    w.setting.sync = i % 2 == 0;
    w.metrics = burst_figures(simulate_resources(w.load, w.setting, truth), w.gpu_times);
    workloads.push_back(w);
  }
  return workloads;
}

TEST(HostTuning, FindsHowLinksAndTheGpuAreShared) {
  HostRates truth;
  truth.compute_factor = 1.2;
  truth.sharing_power = 3;
  truth.linger = 0.4;
  truth.sharing["P1w2-10G sync"] = {6, 1.4e6};
  const std::vector<MeasuredWorkload> workloads = tuned_workloads(truth);
  const double before = simulation_error(workloads, {});
  const HostRates tuned = tune_host_rates(workloads, {});
  EXPECT_LT(simulation_error(workloads, tuned), before / 2);
  ASSERT_TRUE(tuned.sharing.contains("P1w2-10G sync"));
  EXPECT_GT(tuned.sharing.at("P1w2-10G sync").first_weight, 2);
  EXPECT_EQ(to_json(tune_host_rates(workloads, {}), ""), to_json(tuned, ""));
}

TEST(HostTuning, NothingMeasuredChangesNothing) {
  EXPECT_EQ(to_json(tune_host_rates({}, {}), ""), to_json(HostRates(), ""));
}

}  // namespace
}  // namespace forerun::scale
