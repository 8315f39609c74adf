#include "lab/trees/resource_trees.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "lab/trees/boosting.h"

namespace forerun::learn {
namespace {

constexpr double kLeastFigure = 1e-3;

double log_figure(double value) { return std::log(std::max(value, kLeastFigure)); }

// Few rows: shallow trees, slow steps, and every tree sees some of the rows and columns only.
BoostingOptions resource_boosting(uint64_t seed) {
  return {.rounds = 150, .depth = 3, .rate = 0.05, .rows = 0.7, .columns = 0.4, .least_weight = 3, .seed = seed};
}

}  // namespace

const ResourceMetrics& ResourceTrees::guess_of(const ResourceWorkload& workload) const {
  return basis_ == TreeBasis::simulation ? workload.simulated : workload.formulas;
}

std::vector<float> ResourceTrees::row_of(const ResourceWorkload& workload) const {
  std::vector<float> row = workload.columns;
  for (const double value : guess_of(workload)) row.push_back(static_cast<float>(log_figure(value)));
  return row;
}

Status ResourceTrees::train(const ResourceData& data, const Selection& training, uint64_t seed) {
  if (training.empty()) return Error{"there is no workload to train on", "", "check the setting's name"};
  forests_.clear();
  const size_t width = row_of(data.workloads[training[0]]).size();
  for (size_t m = 0; m < kResourceMetrics; ++m) {
    BoostingTable table(width);
    for (const uint32_t i : training) {
      const ResourceWorkload& workload = data.workloads[i];
      const double from = log_figure(guess_of(workload)[m]);
      table.add(row_of(workload), log_figure(workload.measured[m]) - from, 1);
    }
    auto forest = table.grow(resource_boosting(seed));
    if (!forest) return forest.error();
    forests_.push_back(std::move(*forest));
  }
  return {};
}

std::vector<ResourceMetrics> ResourceTrees::predict(const ResourceData& data, const Selection& workloads) const {
  CHECK(forests_.size() == kResourceMetrics, "trees are trained before they predict");
  std::vector<ResourceMetrics> predictions;
  for (const uint32_t i : workloads) {
    const ResourceWorkload& workload = data.workloads[i];
    const std::vector<float> row = row_of(workload);
    ResourceMetrics metrics{};
    for (size_t m = 0; m < kResourceMetrics; ++m) {
      const double from = log_figure(guess_of(workload)[m]);
      metrics[m] = std::exp(from + forests_[m].predict(row));
    }
    predictions.push_back(metrics);
  }
  return predictions;
}

}  // namespace forerun::learn
