// The analytic cost model, after DeletePop: an op takes the larger of its computation and its memory access, plus the
// fixed duration of its kernels.
//
//   computation = waves of tiles x time of a tile at the unit's peak rate x efficiency   (products)
//               = FLOPs / (peak fp32 rate x efficiency)                                  (everything else)
//   memory      = bytes x passes / (bandwidth x efficiency), cached bytes faster
//   latency     = kernels x floor
// Which unit computes follows PyTorch's defaults: fp32 convolutions and cuDNN RNNs may use TF32, matrix products only
// with Precision::tf32. Nothing here is fitted by machine: the constants are set by hand (data/cost/analytic.json).
// Left out: the choice of algorithm (Winograd, FFT), contention, clock changes.
#pragma once

#include <vector>

#include "cost/analytic/constants.h"
#include "cost/op_cost.h"
#include "derive/layout.h"
#include "derive/work.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun {

// What a kernel depends on beside its work.
struct KernelSetting {
  Precision precision = Precision::fp32;
  bool channels_last = false;  // the images that this very op reads
};

// Whether an op reads images in channels-last layout; `layouts` has passed all ops before it.
bool reads_channels_last(const Graph& graph, const Op& op, const LayoutTracker& layouts);

// One cost per op, in the graph's order.
std::vector<OpCost> analytic_costs(const Graph& graph, const Device& device, const TrainingSetup& setup,
                                   const AnalyticConstants& constants);

// The same for one op, given its work. `base` is its base name.
OpCost analytic_cost(const OpWork& work, std::string_view base, const Device& device, const KernelSetting& setting,
                     const AnalyticConstants& constants);

// The unit that runs an op's products.
Unit product_unit(const OpWork& work, Precision precision);
// The unit that does an op's arithmetic, whether products or not.
Unit arithmetic_unit(const OpWork& work, Precision precision);

// Seconds of one product on all multiprocessors, the cheapest tile chosen. `rate`: FLOPs per second of the whole
// device.
double product_seconds(const GemmShape& gemm, double rate, const Device& device, const AnalyticConstants& constants);

}  // namespace forerun
