// GpuCorrection: what a machine's readings say of ops that were not read: by how much the default cost of an op is off there.
//
//   factor of a feature row = exp(base of its kind + trees of its kind(columns) + what remained at this very row)
//   factor of an op         = mean over its rows, weighted by their analytic times
// The logarithms of reading / default cost are averaged over all kinds of kernel, then by kind, each held to the one before it, and
// small forests are grown on what is left (boosting.h): few readings change little, an op that was read gets its reading (that of an
// iteration where there are both), and a kind that was not read gets no more than the mean of the others. Columns are those of the residual model (op_features.h).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cost/analytic/constants.h"
#include "cost/calibrated/boosting.h"
#include "cost/hybrid/op_features.h"
#include "cost/op_cost.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun {

// An op that was read: its feature rows on that GPU, and how it compares to what it costs by default.
struct ReadOp {
  std::vector<hybrid::FeatureRow> rows;
  std::vector<std::string> names;  // of the rows' ops, which rows only view
  double us = 0;
  double default_us = 0;
  double spread = 0;
  bool within = false;  // an iteration
};

class GpuCorrection {
 public:
  // Rows that differ from the formula are taken as they are; ops without rows or times are passed over.
  static GpuCorrection fitted(const std::vector<ReadOp>& ops, const BoostingOptions& options = {});

  // The default costs of the ops of a graph, corrected; in the graph's order. An op of a kind that was read counts as measured.
  void apply(const Graph& graph, const Device& device, const TrainingSetup& setup, const AnalyticConstants& constants,
             std::vector<OpCost>& costs) const;

  // By how much the logarithm of a row's time is off.
  [[nodiscard]] double log_factor(const hybrid::FeatureRow& row) const;
  [[nodiscard]] size_t readings() const { return readings_; }
  // The mean over all kinds, which is what a kind gets that was not read.
  [[nodiscard]] double overall() const { return overall_; }

 private:
  struct Kind {
    double mean = 0;
    std::unordered_map<std::string, double> ops;  // the mean of an op, which column 0 holds
    Forest forest;
    bool read = false;
    std::unordered_map<std::string, double> remained;  // by op and columns, of rows that were read
  };
  [[nodiscard]] const Kind& kind_of(const hybrid::FeatureRow& row) const {
    return kinds_[static_cast<size_t>(row.model)];
  }
  [[nodiscard]] std::vector<double> log_factors(const std::vector<const hybrid::FeatureRow*>& rows) const;

  std::array<Kind, hybrid::kModelCount> kinds_;
  double overall_ = 0;
  size_t readings_ = 0;
};

}  // namespace forerun
