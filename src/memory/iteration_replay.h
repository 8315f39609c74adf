// replay_iterations: the memory of a training run from its iteration, through the simulated allocator.
//
// Follows a program that builds the model, moves the batch to the GPU and trains: parameters and buffers in their order,
// inputs, then iterations of the same ops, the optimizer's state coming with the first update. A storage is allocated by
// the first op that gives it out and freed where the graph says; gradients stay until the next iteration begins. Beside
// storages come what ops need for themselves (op_temporaries.h) and the workspaces that cuBLAS keeps for each thread.
//
// CUDA graphs (torch/_inductor/cudagraph_trees.py of PyTorch 2.13) warm up, are captured and run in one private pool, with cuBLAS's
// workspaces taken anew there and a copy of what they are given; forward and backward graph reuse each other's memory within it. The
// allocator's own counter of allocated bytes does not see what a replayed graph uses; here it is counted.
//
// Left out: what a model's constructor or the loading of weights allocates and frees, other streams, and ops of the
// first update that later ones lack.
#pragma once

#include <functional>

#include "graph/training_run.h"
#include "memory/caching_allocator.h"
#include "memory/live_storages.h"
#include "memory/op_temporaries.h"

namespace forerun {

// An allocation, or a free where bytes is negative. Where bytes is 0, a block goes over to another storage: gradients are
// added in the memory of the first.
struct ReplayEvent {
  int iteration = 0;
  OpId op;            // invalid outside ops: building, zero_grad
  StorageId storage;  // invalid for temporaries and workspaces
  int64_t bytes = 0;  // asked for; of the whole block where it is freed
  int64_t address = 0;
  Use use = Use::temporary;
  int64_t block = 0;     // bytes of the whole block
  int64_t reserved = 0;  // by the allocator at that moment
};

struct IterationReplayOptions {
  AllocatorSettings settings;
  int64_t capacity = DeviceMemory::kPlenty;  // bytes; beyond it an allocation fails, and the replay ends there
  int warm =
      0;  // iterations before those that count; then what is cached goes back (torch.cuda.empty_cache), and peaks begin anew
  int iterations = 3;
  bool keeps_gradients = false;  // until the backward pass begins, rather than until the iteration does (LoopRules)
  // Compiled kernels are timed in the first iteration, each time over a buffer of this size that drives the rest out of the L2 cache
  // (torch/_inductor/runtime/benchmarking.py of PyTorch 2.11), those of forward passes on a copy of what they write over (clone_args of
  // triton_heuristics.py). Both are given back at once, but what comes later lies where they lay. 0: none.
  Bytes tuning_buffer;
  Bytes cublas_workspace = Bytes(32 * kMebibyte);  // of a thread: Hopper's, without CUBLAS_WORKSPACE_CONFIG
  TemporaryOptions temporaries;
  // Where compiled graphs are launched as CUDA graphs: what they make, take and are given lies in a pool of their own, which shares
  // nothing with the rest; null: they are not.
  const CompiledParts* cuda_graphs = nullptr;
  std::function<void(const ReplayEvent&)> observe;  // hears every event; may be null
};

struct IterationReplay {
  MemoryEstimate peak;  // at the highest allocated memory; peak_reserved over the whole run
  AllocatorFigures figures;
  int peak_iteration = 0;
  bool out_of_memory = false;
};

IterationReplay replay_iterations(const Graph& graph, const IterationReplayOptions& options = {});

// All that a replay asks of a device beside its capacity. Where two devices ask for the same, a graph replays alike on both.
struct DeviceDemands {
  Bytes cublas_workspace;
  Bytes tuning_buffer;
  std::vector<Temporary> temporaries;  // of all ops, one behind the other

  bool operator==(const DeviceDemands&) const = default;
};
DeviceDemands device_demands(const Graph& graph, const IterationReplayOptions& options);

}  // namespace forerun
