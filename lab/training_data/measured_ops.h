// Measured ops as the hybrid cost model learns from them: op samples, and the ops of measured iterations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/trees/hybrid_training.h"
#include "predict/cost_models.h"
#include "records/data_scan.h"
#include "records/data_split.h"

namespace forerun {

// A graph of the one op of a sample.
Graph graph_of(const OpSample& sample);

// The ops of a run, with what was measured of them. Ops without a kernel are left out.
std::vector<hybrid::MeasuredOp> measured_ops(const RunRecord& record, const Device& device,
                                             const AnalyticConstants& constants);
std::vector<hybrid::MeasuredOp> measured_ops(const OpSample& sample, const Device& device,
                                             const AnalyticConstants& constants);

// All of `files`, of the training part only. Records whose GPU the catalogue does not know are passed over.
Result<std::vector<hybrid::MeasuredOp>> load_measured_ops(const std::vector<std::string>& files,
                                                          const TrainingPart& part, const CostModels& cost_models,
                                                          const std::function<void(const DataProblem&)>& problem);

}  // namespace forerun
