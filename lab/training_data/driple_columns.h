// Figures of a workload's iteration, and what predictors of resources are given of them (driple_data.h): columns for
// trees, globals for networks, first guesses.
#pragma once

#include <string>
#include <vector>

#include "graph/training_run.h"
#include "ingest/resources/resource_record.h"
#include "lab/dataset/driple/workload.h"
#include "predict/cost_models.h"

namespace forerun {

// What one worker's iteration is, from the graph and from what its ops are predicted to take.
struct IterationFigures {
  double parameter_bytes = 0, tensors = 0, largest = 0;  // largest: share of the parameters in one tensor
  double flops = 0, moved = 0;                           // of forward and backward pass
  double kernels = 0, ops = 0;
  double gpu_ms = 0, host_ms = 0, forward_ms = 0, backward_ms = 0;
  double product_share = 0, memory_share = 0, tiny_share = 0;  // of GPU time: products; memory-bound; latency-bound ops
  double mean_kernel_us = 0;
};

IterationFigures figures_of(const TrainingRun& run, const Device& device, const CostModels& cost_models);

struct NamedValue {
  const char* name;
  double value;
};
std::vector<NamedValue> columns_of(const ResourceRecord& record, const IterationFigures& figures);
// What is known without any model of the GPU, about -2 to 2 each.
// `even_links`: how often a server's answers share its link evenly.
std::vector<NamedValue> globals_of(const ResourceRecord& record, const IterationFigures& figures, double even_links);
learn::ResourceMetrics formulas_of(const ResourceRecord& record, const IterationFigures& figures);

}  // namespace forerun
