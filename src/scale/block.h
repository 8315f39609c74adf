// Block: a piece of a model that stays together when the model is cut into stages, and what it costs one GPU.
//
// Costs are of one micro-batch on one GPU of the tensor group. Times are what the GPU and the host that feeds it take
// together; communication of the tensor, context and expert groups is apart, as nothing hides it.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"
#include "cost/time_parts.h"

namespace forerun::scale {

struct Block {
  std::string name;
  bool layer = false;             // one of the equal layers that are dealt out to stages
  int64_t parameters = 0;         // of one GPU
  int64_t expert_parameters = 0;  // of these, experts or tables, which data-parallel GPUs may deal out among them
  Nanoseconds forward;
  Nanoseconds backward;
  Nanoseconds weight_gradients;   // of the backward pass, what nobody waits for before the update; 0: not known
  Nanoseconds forward_exchange;   // within the tensor, context and expert groups
  Nanoseconds backward_exchange;  // the same
  Bytes output;                   // passed on to the next block
  Bytes copies;                   // of its parameters in fp8, kept as long as it trains
  Bytes saved;                    // by the forward pass for the backward pass, its input included
  Bytes transient;                // more while it runs, a second forward pass included
};

struct ModelCosts {
  std::vector<Block> blocks;
  TimeParts passes;               // what forward and backward passes of all blocks are spent on, communication apart
  TimeParts update;               // the same of an update; nothing: access to memory
  int64_t tied_parameters = 0;    // of the first block, which the last one uses too: a pipeline's last stage has a copy
  double update_ns = 0;           // of one parameter
  Nanoseconds update_fixed;       // besides
  double flops_per_sample = 0;    // of the products, forward and backward, nothing run twice
  double peak_seconds = 0;        // of a sample's products, each at the peak of the unit that runs it
  int64_t tokens_per_sample = 0;  // 0: no tokens
};

// How a GPU's share of a model runs.
struct Cut {
  int64_t micro_batch = 1;  // samples that pass through it at once
  int64_t tensor = 1;       // GPUs that share its layers
  bool checkpoint = false;  // layers keep their input alone; their second forward pass is part of the backward pass
  bool selective = false;   // layers keep what takes long to make, and make the rest again
  bool sequence = false;    // norms and the like are divided by the tensor group, along the sequence
  int64_t context = 1;      // GPUs that share a sequence
  int64_t experts = 1;      // GPUs that experts, or DLRM's tables, are dealt out to
  friend auto operator<=>(const Cut&, const Cut&) = default;
};

// What a model costs when it is cut so; an Error where it cannot be.
using CostSource = std::function<Result<ModelCosts>(const Cut& cut)>;

}  // namespace forerun::scale
