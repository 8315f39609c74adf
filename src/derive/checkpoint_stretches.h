// Which stretches of a forward pass activation checkpointing runs twice, and how far the second time.
//
// A stretch is a block of the model: the ops of one layer of a list (graph/op_modules.h), in one piece. Its second run stops once
// everything that the backward pass needs has been made, as torch.utils.checkpoint does (use_reentrant=False): what follows the
// last op that keeps something is passed over, and that op itself where it keeps only what it was given.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace forerun::derive {

struct Stretch {
  size_t begin = 0, end = 0;  // ops of the forward graph
  size_t last = 0;            // the last op that keeps something for the backward pass; `end` where there is none
  bool last_runs = true;      // whether that op runs again itself
};

// In order; empty where the model has no blocks. `keeps_nothing`: of an op of the forward graph, whatever its name says.
std::vector<Stretch> checkpoint_stretches(const Graph& forward,
                                          const std::function<bool(size_t op)>& keeps_nothing = nullptr);

// The op's results are kept by selective checkpointing, as they take long to make: products, convolutions, attention.
bool is_kept_by_selective(std::string_view dispatched);

}  // namespace forerun::derive
