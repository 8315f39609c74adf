#include "lab/eval/driple_sensitivity.h"

#include <algorithm>
#include <map>
#include <vector>

#include "api/scale_resources.h"
#include "base/statistics.h"
#include "lab/dataset/driple/workload.h"
#include "lab/training_data/driple_data.h"

namespace forerun {
namespace {

// The paper's is ResNet-56 on CIFAR-10 with a batch of 512; this one is of the same kind.
constexpr const char* kSimulatedModel = "resnet18";
constexpr int64_t kSimulatedBatch = 64;

void count_pattern(BurstPattern pattern, PatternCounts& counts) {
  if (pattern == BurstPattern::idle) ++counts.idle;
  if (pattern == BurstPattern::alternating) ++counts.alternating;
  if (pattern == BurstPattern::burst) ++counts.burst;
}

// Figures of a resource by workload, its windows averaged.
using FigureValues = std::map<std::string, std::pair<double, double>>;  // by id: sum and count

FigureSpread spread_of(const char* resource, const char* figure, const FigureValues& values) {
  std::vector<double> means;
  for (const auto& [id, sum] : values) means.push_back(sum.first / sum.second);
  std::sort(means.begin(), means.end());
  return {resource, figure, sorted_quantile(means, 0.1), sorted_quantile(means, 0.5), sorted_quantile(means, 0.9)};
}

Result<SettingFigures> simulated_in(const std::string& setting, const CostModels& cost_models) {
  const auto answer =
      simulate_training({.model = kSimulatedModel, .batch = kSimulatedBatch, .setting = setting}, cost_models);
  if (!answer) return answer.error();
  SettingFigures figures{.setting = setting};
  for (size_t r = 0; r < answer->use.metrics.size(); ++r) {
    const monitor::BurstMetrics& m = answer->use.metrics[r];
    const double values[] = {m.idle_ms, m.burst_ms, m.amount};
    std::copy(std::begin(values), std::end(values), figures.figures.begin() + static_cast<int64_t>(3 * r));
  }
  return figures;
}

}  // namespace

Result<DripleSensitivity> driple_sensitivity(std::span<const ResourceRecord> records, const std::string& setting,
                                             const CostModels& cost_models) {
  DripleSensitivity sensitivity{.setting = setting};
  for (const char* resource : kMeasuredResources) sensitivity.patterns.push_back({.resource = resource});
  std::array<std::array<FigureValues, 3>, 4> values;
  bool memory_times = true;
  for (const ResourceRecord& record : records) {
    if (table_setting(record) != setting) continue;
    ++sensitivity.windows;
    memory_times = memory_times && record.measured.gpu_times == GpuTimes::kernels;
    for (size_t r = 0; r < values.size(); ++r) {
      const BurstFigures& m = record.measured.metrics[r];
      count_pattern(m.pattern, sensitivity.patterns[r]);
      const double figures[] = {m.idle_ms, m.burst_ms, m.amount};
      for (size_t f = 0; f < 3; ++f) {
        auto& [sum, count] = values[r][f][record.id];
        sum += figures[f];
        count += 1;
      }
    }
  }
  sensitivity.workloads = std::ssize(values[0][0]);
  for (size_t r = 0; r < values.size() && sensitivity.workloads > 0; ++r) {
    for (size_t f = 0; f < 3; ++f) {
      const bool copy = kMeasuredResources[r] == std::string_view("memory") && f < 2 && !memory_times;
      if (!copy) sensitivity.spreads.push_back(spread_of(kMeasuredResources[r], learn::kFigureNames[f], values[r][f]));
    }
  }
  sensitivity.workload = std::string(kSimulatedModel) + ", batch " + std::to_string(kSimulatedBatch);
  for (const std::string& name : thirteen_settings()) {
    auto figures = simulated_in(name, cost_models);
    if (!figures) return figures.error();
    sensitivity.settings.push_back(std::move(*figures));
  }
  return sensitivity;
}

}  // namespace forerun
