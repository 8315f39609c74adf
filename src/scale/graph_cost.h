// The blocks of any model, from its iteration on one GPU as `forerun predict` sees it.
//
// A block is what block_of (graph/op_modules.h) names, or else the first part of a module's name. Each op's time is the
// larger of its GPU and host time; the blocks' times are then scaled so that they add up to the simulated phases, and
// the update's time is spread over the parameters. Kept for the backward pass is what forward ops make and backward ops
// still need. Such a model is cut into stages and replicas, but its layers are not shared.
#pragma once

#include <span>

#include "cost/host/host.h"
#include "cost/op_cost.h"
#include "graph/training_run.h"
#include "scale/block.h"
#include "timeline/host_gpu_timeline.h"

namespace forerun::scale {

// Of an iteration's forward and backward pass.
struct ProductWork {
  double flops = 0;
  double peak_seconds = 0;  // each product at the peak of the unit that runs it
};

ModelCosts graph_costs(const TrainingRun& run, std::span<const OpCost> costs, const HostCosts& host,
                       const IterationTiming& times, const ProductWork& products);

}  // namespace forerun::scale
