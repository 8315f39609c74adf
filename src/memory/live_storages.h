// live_storages: the memory of a training iteration from the lifetimes of its storages.
//
// Walks the ops of a steady-state iteration in order: roots are there from the start, a storage is born with the first
// op that gives it out and dies where the graph frees it, gradients of the iteration before are gone (zero_grad sets
// them to none), and each size is rounded up as PyTorch's caching allocator does. Beside storages it counts the
// workspaces that cuBLAS takes from the allocator. A gradient that backward adds up counts as added in place where its
// first term dies.
//
// Left out: fragmentation, temporaries inside kernels (cuDNN workspaces, buffers of column reductions) and what the
// CUDA context itself takes. peak_reserved rounds the two pools to segments as if each were filled without gaps.
#pragma once

#include "graph/graph.h"
#include "memory/memory_estimate.h"

namespace forerun {

MemoryEstimate live_storages(const Graph& graph);

}  // namespace forerun
