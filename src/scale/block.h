// Block: a piece of a model that stays together when the model is cut into stages, and what it costs one GPU.
//
// Costs are of one micro-batch on one GPU of the tensor group. Times are what the GPU and the host that feeds it take
// together; communication of the tensor group is apart, as nothing hides it.
#pragma once

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
  bool layer = false;      // one of the equal layers that are dealt out evenly to stages
  int64_t parameters = 0;  // of one GPU
  Nanoseconds forward;
  Nanoseconds backward;
  Nanoseconds forward_exchange;   // within the tensor group
  Nanoseconds backward_exchange;  // the same
  Bytes output;                   // passed on to the next block
  Bytes saved;                    // by the forward pass for the backward pass, its input included
  Bytes transient;                // more while it runs
};

struct ModelCosts {
  std::vector<Block> blocks;
  TimeParts passes;               // what forward and backward passes of all blocks are spent on, communication apart
  int64_t tied_parameters = 0;    // of the first block, which the last one uses too: a pipeline's last stage has a copy
  double update_ns = 0;           // of one parameter
  Nanoseconds update_fixed;       // besides
  double flops_per_sample = 0;    // of the products, forward and backward, nothing run twice
  double peak_seconds = 0;        // of a sample's products, each at the peak of the unit that runs it
  int64_t tokens_per_sample = 0;  // 0: no tokens
};

// What a model costs at so many samples a micro-batch, its layers shared by so many GPUs. An Error where it cannot be
// shared so.
using CostSource = std::function<Result<ModelCosts>(int64_t micro_batch, int64_t tensor)>;

}  // namespace forerun::scale
