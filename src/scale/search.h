// All plans that make sense for a model on a cluster, and the best of them.
//
// Tensor groups stay within a node and are powers of two; pipelines have any number of stages that the layers go
// round; data parallelism is the rest. Experts are on every GPU, or dealt out to as many as a node has beside the tensor
// groups. Sequence parallelism goes with tensor groups, context groups with long sequences, ZeRO 3 within nodes (HSDP) with several of
// them. Micro-batches are powers of two whose product with data parallelism divides the global batch, up to the first that takes far
// more memory than a GPU has. Every plan is estimated in full (step.h); those that do not fit in memory are counted and left out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/work_control.h"
#include "scale/step.h"

namespace forerun::scale {

struct SearchSpace {
  int64_t global_batch = 0;
  int64_t layers = 0;       // equal ones; 0: the model is cut freely
  int64_t most_tensor = 1;  // 1: layers cannot be shared
  int64_t most_stages = 1;
  int64_t micro_batch = 0;    // the only one to try; 0: all
  bool checkpoints = false;   // blocks can run again for their backward pass
  bool checkpoint = false;    // and all plans are to have them do so
  bool selective = false;     // all plans run what is cheap again
  int64_t experts = 1;        // of a layer
  int64_t tables = 0;         // that can be dealt out, as a recommendation model's
  int64_t most_context = 1;   // GPUs that may share a sequence
  bool sequence = false;      // tensor groups may divide the rest along the sequence
  bool within_nodes = false;  // ZeRO 3 may shard within nodes
};

std::vector<Plan> plans_of(const SearchSpace& space, const GpuCluster& cluster);

struct Ranking {
  std::vector<Step> steps;     // that fit, the fastest first
  std::vector<Step> doubtful;  // that do not by the rules, but may by a replay (kDoubtful); the fastest first
  int64_t considered = 0;
  int64_t too_large = 0;        // do not fit in memory, doubtful ones left out
  int64_t impossible = 0;       // the model cannot be cut so
  std::optional<Step> nearest;  // to fitting, of those too large
};

// A plan that by the rules needs up to so many times a GPU's memory may fit by a replay.
inline constexpr double kDoubtful = 1.3;

void sort_ranked(std::vector<Step>& steps);
// Counts a step that does not fit.
void leave_out(Step step, Ranking& ranking);

// The only Error is that of `control`. `replayed`: memory by the rules is looked at again, and doubtful plans are kept.
Result<Ranking> rank_plans(const CostSource& costs, const StepSetup& setup, const SearchSpace& space,
                           const WorkControl& control = {}, bool replayed = false);

}  // namespace forerun::scale
