// Trains the hybrid cost model on a folder of measured ops and iterations, and writes it where `predict` looks for it.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lab/trees/hybrid_training.h"
#include "predict/cost_models.h"
#include "records/data_scan.h"

namespace forerun {

struct HybridRequest {
  std::vector<std::string> files;  // of run records and op samples
  std::set<std::string> without;   // families of the training split that are left out, to validate on
  bool op_samples = true;          // false: from iterations alone
  std::string out;                 // empty: the data folder's
  hybrid::GrowthOptions growth;
  std::function<void(const DataProblem&)> problem;
};

struct HybridOutcome {
  std::string file;
  int64_t ops = 0;      // measured, within iterations
  int64_t samples = 0;  // timed alone
  int64_t trees = 0;
  int64_t bytes = 0;
  double seconds = 0;
};

Result<HybridOutcome> train_hybrid(const HybridRequest& request, const WorkControl& control = {});

// What it learns from. `cost_models` is without trees.
Result<std::vector<hybrid::MeasuredOp>> hybrid_ops(const HybridRequest& request, const CostModels& cost_models);

}  // namespace forerun
