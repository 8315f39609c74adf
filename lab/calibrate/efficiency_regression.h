// Fits an Efficiency to measured iterations of Megatron, small and large, and to NCCL's measured all-reduces.
//
// All unknowns are fitted together, by Levenberg-Marquardt on the logarithm of measured over computed time: the
// constants of the formulas, and at each measured shape one factor for layers and one for embedding and head. Each is
// held near its first value by a prior as wide as our ignorance of it: 5 % for the share of the peak that products
// reach, which decides at other shapes than the measured, 10 % for the factors, and a factor of two or more for the
// others. Runs at scale say what products reach at sizes that two GPUs do not hold: those of one stage, in whose times no
// schedule of a pipeline is mixed. The collectives' constants are a linear least-squares fit of their own.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lab/papers/published_runs.h"
#include "lab/papers/vtrain/megatron_rows.h"
#include "scale/efficiency.h"
#include "scale/step.h"
#include "scale/transformer.h"

namespace forerun::scale {

// The model and plan of a measured iteration: GPT-2's vocabulary, exchange after the backward pass.
Transformer transformer_of(const MegatronRow& row);
Plan plan_of(const MegatronRow& row);

// Its time by the formulas; 0 where the plan makes no sense. Layers are checkpointed where the GPU's memory is too
// small otherwise.
Nanoseconds predicted_time(const MegatronRow& row, const GpuCluster& cluster, const Efficiency& efficiency);

// A published run of many GPUs, as the regression sees it.
struct RunAtScale {
  Transformer model;
  Plan plan;
  GpuCluster cluster;
  Nanoseconds measured;
};
// Whether constants are fitted to it: it has one stage.
bool is_fitted_to(const MegatronRun& run);

struct EfficiencyRegression {
  Efficiency efficiency;
  double formulas_error = 0;  // mean of |computed - measured| / measured of the rows fitted to, by the formulas alone
  double error = 0;           // with the factors of shapes
  int rounds = 0;
};

// `cluster`: of the rows; its number of GPUs is taken from each row.
EfficiencyRegression calibrate_efficiency(std::span<const MegatronRow> rows, const GpuCluster& cluster,
                                          std::span<const RunAtScale> runs, const Efficiency& first);

// call, step and share of a link of the given bandwidth.
LinkEfficiency calibrate_link(std::span<const AllReduceRow> rows, double bandwidth);

}  // namespace forerun::scale
