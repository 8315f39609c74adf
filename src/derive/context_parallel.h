// Context parallelism: from the forward graph of a part of every sequence to the one of a GPU that trains on it.
//
// Source: Dubey et al., Llama 3 (2024), as torch.distributed.tensor.experimental has it by default. Each of N GPUs has 1/N of
// every sequence, dealt out so that causal attention is the same work for all; before attention keys and values of all are
// gathered, and their gradients scattered behind it. Everything else goes token by token. Refused where it does not: models
// with convolutions, recurrent layers, masks or attention that is not one op, and blocks without attention.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "graph/graph.h"

namespace forerun::derive {

inline constexpr const char* kGatherSequence = "forerun.gather_sequence.default";
inline constexpr const char* kSequenceGathering = "c10d._allgather_base_.default";  // as they are dispatched
inline constexpr const char* kSequenceScattering = "c10d._reduce_scatter_base_.default";

// `forward`: of sequences 1/gpus as long. The same graph for a group of one.
Result<Graph> context_parallel(const Graph& forward, int64_t gpus);

}  // namespace forerun::derive
