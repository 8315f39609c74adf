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

#include "base/quantity.h"
#include "graph/graph.h"

namespace forerun {

struct MemoryEstimate {
  Bytes peak_allocated;
  Bytes peak_reserved;
  OpId peak_op;  // the op during which peak_allocated is reached; invalid where the roots alone are the peak

  // What is live at the peak; the parts add up to peak_allocated.
  Bytes parameters;
  Bytes buffers;
  Bytes optimizer_state;
  Bytes inputs;
  Bytes gradients;    // made in the backward phase and kept to the end of the iteration
  Bytes activations;  // made in the forward phase
  Bytes temporaries;  // everything else
  Bytes workspaces;   // cuBLAS
};

MemoryEstimate live_storages(const Graph& graph);

}  // namespace forerun
