// The blocks of any model, from its iteration on one GPU as `forerun predict` sees it.
//
// A block is what ModuleBlocks (graph/op_modules.h) names, or else the first part of a module's name. Ops count by their GPU
// time, or where the host is what a phase waits for by the longer of both; the blocks' times are then scaled so that they
// add up to the simulated phases, and the update's time is spread over the parameters. What tensor, context and
// expert groups exchange (derive/tensor_parallel.h and the like) are ops of the iteration, and counted apart. Kept for the backward pass is what forward ops make
// and backward ops still need; blocks that are checkpointed run again within their backward pass. Blocks of one list with as
// many parameters each, if they are most of the model, are its layers.
#pragma once

#include <span>
#include <string>

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

// A block that stands for so many more behind it (derive/repeated_blocks.h).
struct RepeatedBlock {
  std::string name;
  int64_t others = 0;
};

// Where each block begins, by op of a forward graph, in their order.
std::vector<size_t> block_begins(const Graph& forward);

// `products`: of all blocks, those that are repeated too.
ModelCosts graph_costs(const TrainingRun& run, std::span<const OpCost> costs, const HostCosts& host,
                       const IterationTiming& times, const ProductWork& products, const RepeatedBlock& repeated = {});

}  // namespace forerun::scale
