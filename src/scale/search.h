// All plans that make sense for a model on a cluster, and the best of them.
//
// Tensor groups stay within a node and are powers of two; pipelines have any number of stages that the layers go
// round; data parallelism is the rest. Experts are on every GPU, or dealt out to as many as a node has beside the tensor
// groups. Sequence parallelism goes with tensor groups, context groups with long sequences, ZeRO 3 within nodes (HSDP) with several of
// them. Micro-batches are powers of two whose product with data parallelism divides the global batch. Every plan is
// estimated in full (step.h); those that do not fit in memory are counted and left out.
#pragma once

#include <cstdint>
#include <vector>

#include "base/work_control.h"
#include "scale/step.h"

namespace forerun::scale {

struct SearchSpace {
  int64_t global_batch = 0;
  int64_t layers = 0;       // equal ones; 0: the model is cut freely
  int64_t most_tensor = 1;  // 1: layers cannot be shared
  int64_t most_stages = 1;
  int64_t most_micro_batch = 32;
  int64_t experts = 1;        // of a layer
  int64_t most_context = 1;   // GPUs that may share a sequence
  bool sequence = false;      // tensor groups may divide the rest along the sequence
  bool within_nodes = false;  // ZeRO 3 may shard within nodes
};

std::vector<Plan> plans_of(const SearchSpace& space, const GpuCluster& cluster);

struct Ranking {
  std::vector<Step> steps;  // that fit, the fastest first
  int64_t considered = 0;
  int64_t too_large = 0;   // do not fit in memory
  int64_t impossible = 0;  // the model cannot be cut so
};

// The only Error is that of `control`.
Result<Ranking> rank_plans(const CostSource& costs, const StepSetup& setup, const SearchSpace& space,
                           const WorkControl& control = {});

}  // namespace forerun::scale
