// How many kernels an update over lists of tensors launches.
//
// Foreach and fused ops cut tensors into chunks; a launch takes so many tensors (by how many lists there are: their addresses are
// arguments of the kernel) and so many chunks, and a tensor whose chunks do not all fit goes on in the next. Counted as PyTorch does:
// multi_tensor_apply of aten/src/ATen/native/cuda/MultiTensorApply.cuh, 2.0 to 2.13.
#pragma once

#include <cstdint>
#include <span>

#include "graph/graph.h"

namespace forerun {

// `sizes`: elements of each tensor of a list; `lists`: of them, results counted; `scalars`: each tensor has a number of its own.
int64_t multi_tensor_launches(std::span<const int64_t> sizes, int64_t lists, bool scalars);

// Of an op that updates lists; 0 of others.
int64_t multi_tensor_launches(const Graph& graph, const Op& op);

}  // namespace forerun
