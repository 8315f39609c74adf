#include "lab/calibrate/host_tuning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace forerun::scale {
namespace {

constexpr SimulationOptions kTuningRuns = {.windows = 2};
constexpr double kMostError = 2;
constexpr double kLeastGain = 1e-4;  // of the mean error
constexpr double kFactors[] = {1.5, 1.2, 1.07};

struct TunedField {
  double HostRates::*value;
  double start;  // where the rates so far say nothing of it
  double most;
};
constexpr TunedField kTunedFields[] = {{&HostRates::compute_factor, 1, 10},   {&HostRates::compute_extra_us, 1600, 1e6},
                                       {&HostRates::sharing_factor, 1.1, 10}, {&HostRates::sharing_power, 3, 40},
                                       {&HostRates::linger, 0.8, 1},          {&HostRates::gpu_factor, 1, 2},
                                       {&HostRates::copy_use, 0.1, 1},        {&HostRates::link_share, 0.95, 1},
                                       {&HostRates::start_us, 800, 1e5},      {&HostRates::jitter, 0.3, 0.5},
                                       {&HostRates::async_passes, 1, 100},    {&HostRates::duplex_share, 0.93, 1}};

using WorkloadsBySetting = std::map<std::string, std::vector<MeasuredWorkload>>;

// Moves `value` while the error falls; the error that is left.
double move(double& value, double most, double factor, double error, const std::function<double()>& judged) {
  for (const double by : {factor, 1 / factor}) {
    bool moved = false;
    while (true) {
      const double before = value;
      value = std::min(value * by, most);
      const double after = value == before ? error : judged();
      if (!(after < error - kLeastGain)) {
        value = before;
        break;
      }
      error = after;
      moved = true;
    }
    if (moved) break;
  }
  return error;
}

void tune_sharing(const WorkloadsBySetting& settings, double factor, HostRates& rates) {
  constexpr LinkSharing kFirst = {3, 2e6, 6e6, 4e6};
  constexpr LinkSharing kMost = {50, 1e8, 1e8, 1e8};
  for (const auto& [name, workloads] : settings) {
    if (workloads.front().setting.servers == 0) continue;
    LinkSharing& sharing = rates.sharing.try_emplace(name, kFirst).first->second;
    const auto judged = [&, &runs = workloads] { return simulation_error(runs, rates); };
    double error = judged();
    error = move(sharing.first_weight, kMost.first_weight, factor, error, judged);
    error = move(sharing.turn_bytes, kMost.turn_bytes, factor * factor, error, judged);
    error = move(sharing.first_turn_bytes, kMost.first_turn_bytes, factor * factor, error, judged);
    if (sharing.head_bytes == 0) sharing.head_bytes = kFirst.head_bytes;
    move(sharing.head_bytes, kMost.head_bytes, factor * factor, error, judged);
  }
}

}  // namespace

BurstFigureTable burst_figures(const ResourceUse& use, GpuTimes times) {
  BurstFigureTable table = {};
  for (size_t i = 0; i < table.size(); ++i) {
    const bool by_clocks = times == GpuTimes::clocks && i < use.clocks.size();
    const monitor::BurstMetrics& m = by_clocks ? use.clocks[i] : use.metrics[i];
    table[i] = {m.idle_ms, m.burst_ms, m.amount};
  }
  return table;
}

double figures_error(const BurstFigureTable& simulated, const BurstFigureTable& measured) {
  double sum = 0;
  double count = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    for (size_t j = 0; j < measured[i].size(); ++j) {
      if (!(measured[i][j] > 0)) continue;
      sum += std::min(kMostError, std::abs(simulated[i][j] / measured[i][j] - 1));
      ++count;
    }
  }
  return count > 0 ? sum / count : 0;
}

double simulation_error(std::span<const MeasuredWorkload> workloads, const HostRates& rates) {
  double sum = 0;
  for (const MeasuredWorkload& w : workloads) {
    const ResourceUse use = simulate_resources(w.load, w.setting, rates, kTuningRuns);
    sum += figures_error(burst_figures(use, w.gpu_times), w.metrics);
  }
  return workloads.empty() ? 0 : sum / static_cast<double>(workloads.size());
}

HostRates tune_host_rates(std::span<const MeasuredWorkload> workloads, const HostRates& first,
                          const std::function<void(double)>& progress) {
  HostRates rates = first;
  if (workloads.empty()) return rates;
  const HostRates untold;
  for (const TunedField& field : kTunedFields) {
    if (rates.*field.value == untold.*field.value) rates.*field.value = field.start;
  }
  WorkloadsBySetting settings;
  for (const MeasuredWorkload& w : workloads) settings[setting_name(w.setting)].push_back(w);
  const auto judged = [&, &runs = workloads] { return simulation_error(runs, rates); };
  for (const double factor : kFactors) {
    tune_sharing(settings, factor, rates);
    double error = judged();
    for (const TunedField& field : kTunedFields) {
      error = move(rates.*field.value, field.most, factor, error, judged);
      if (progress) progress(error);
    }
  }
  return rates;
}

}  // namespace forerun::scale
