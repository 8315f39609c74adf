// Activation checkpointing: the iteration as to its memory where each block of the model keeps only its inputs and runs its
// forward pass again when its backward pass comes (torch.utils.checkpoint around each layer of a list).
//
// What ops of a block make, and only the block's own forward and backward ops use, goes at the end of the block's forward
// pass and is made anew before its first backward op. Left out: what the second forward pass makes and lets go on the way.
#pragma once

#include "graph/graph.h"

namespace forerun {

inline constexpr const char* kRecomputeOp = "forerun.recompute";

struct Checkpointed {
  Graph graph;
  int blocks = 0;          // that are run twice; 0: the model has no blocks, and nothing changes
  double forward_ops = 0;  // share of the forward ops that are run twice
};

Checkpointed checkpointed(const Graph& graph);

}  // namespace forerun
