// FSDP: the iteration of one GPU whose parameters, gradients and optimizer state are cut into equal pieces; data_parallel.h
// says by which rules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace forerun {

// A GPU's piece of a tensor: cut along the first dimension, padded to equal pieces. A tensor whose first dimension is shorter than
// there are GPUs (stacked experts) is cut along the first that is long enough, where there is one, as torchtitan has FSDP do. A
// tensor without dimensions is whole.
std::vector<int64_t> piece_of(std::span<const int64_t> shape, int64_t gpus);

// `reshard`: let gathered parameters go after the forward pass of their block.
Graph sharded_blocks(const Graph& graph, int64_t gpus, bool reshard);

}  // namespace forerun
