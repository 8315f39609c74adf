// The hybrid cost model: the analytic model's time of an op, corrected by trees that were grown on measured ops.
//
//   time    = analytic time x exp(forest(columns))          for each feature row of an op (op_features.h), then summed
//   kernels = steps of a recurrent layer (1 of others) x 2 ^ forest(columns), rounded
//   span    = time x exp(forest(columns)), at most the time: what remains where kernels of one op run side by side
// The trees see how an op differs from the formula on the GPU they were measured on (hybrid_file.h). On another GPU as much of the correction is applied to that GPU's analytic time as carries over
// (device_scale.h). An op that no tree has seen keeps its analytic time; one outside the range of what was seen is marked
// as not measured.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/hybrid/device_scale.h"
#include "cost/hybrid/kernel_forests.h"
#include "cost/hybrid/op_features.h"
#include "cost/op_cost.h"

namespace forerun::hybrid {

struct Range {
  float low = 0;
  float high = 0;
};

// What is known of one kind of kernel.
struct KernelModel {
  std::vector<std::string> ops;  // sorted; an op's number is its place, column 0
  std::array<Range, kColumns> seen = {};
  DeferredForests forests;

  // -1: never seen.
  [[nodiscard]] int number_of(std::string_view op) const;
};

struct FeatureRowCost {
  double us = 0;
  double overlapped_us = 0;  // of us, beside other kernels of the feature row
  double kernels = 1;
  bool in_distribution = false;  // the op was seen, at shapes around this one
};

class ResidualModel {
 public:
  std::string gpu;  // that it was measured on, as the catalogue calls it
  std::array<std::optional<KernelModel>, kModelCount> models;

  [[nodiscard]] FeatureRowCost cost(const FeatureRow& feature_row) const { return costs({&feature_row, 1})[0]; }
  // Many at once, which is faster.
  [[nodiscard]] std::vector<FeatureRowCost> costs(std::span<const FeatureRow> feature_rows) const;
  // Unpacks forests before they are asked for, those that most training iterations ask for first, until it is known which ops there
  // are: from then on only those that are asked for are worth it.
  void unpack_ahead(const std::function<bool()>& ops_are_known) const;
};

// What it takes to cost ops on a GPU other than the measured one.
struct OtherGpu {
  Device measured;
  DeviceScale scale;
};

// A feature row of `device`, which is not the measured GPU, as it is carried over: `there` was made for the device with the
// rates that it sustains and without its cache.
CarriedRow carried_row(const MeasuredRow& measured, const FeatureRow& there, Unit unit, const OtherGpu& other,
                       const Device& device);
CarriedRow carried_row(const MeasuredRow& measured, Model model, const RowTimes& there, Unit unit,
                       const OtherGpu& other, const Device& device);

// The ops of a graph as every GPU sees them: what each has to do, and what the trees say of it on the GPU that was measured. Made
// once, it costs the graph on many GPUs; graph and constants outlive it.
class GraphCosts {
 public:
  // `setup`: as the GPUs run it, which is the same on all of them.
  GraphCosts(const Graph& graph, const Device& measured, const TrainingSetup& setup, const AnalyticConstants& constants,
             const ResidualModel& residual_model);

  // One cost per op, in the graph's order: on the measured GPU, or on another one.
  [[nodiscard]] std::vector<OpCost> on_measured() const;
  [[nodiscard]] std::vector<OpCost> on(const Device& device, const OtherGpu& other) const;

 private:
  // Rows that differ in nothing that a device could tell: the layers of a model repeat.
  struct Kind {
    RowWork work;
    uint32_t asked = 0;    // of the trees
    RowTimes on_measured;  // with its cache, and without
    RowTimes on_plain;
    bool operator==(const Kind& other) const { return work == other.work && asked == other.asked; }
  };
  [[nodiscard]] std::vector<OpCost> summed(const std::vector<FeatureRowCost>& costs,
                                           const std::vector<RowTimes>& times) const;

  Precision precision_;
  const AnalyticConstants* constants_;
  std::vector<Kind> kinds_;
  std::vector<FeatureRowCost> known_;  // by Kind::asked
  std::vector<uint32_t> rows_;         // kinds, one row behind the other
  std::vector<uint32_t> behind_;       // by op, where its rows end
};

// One cost per op, in the graph's order. `other` where the device is not the one that was measured.
std::vector<OpCost> hybrid_costs(const Graph& graph, const Device& device, const TrainingSetup& setup,
                                 const AnalyticConstants& constants, const ResidualModel& residual_model,
                                 const std::optional<OtherGpu>& other = std::nullopt);

}  // namespace forerun::hybrid
