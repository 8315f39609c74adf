// Tensor parallelism: from a model's forward graph to the one that a GPU of a tensor group runs.
//
// Ops are the same with smaller operands (tensor_splits.h). Two kinds are put in where Megatron has them: one behind each
// result that the GPUs add up (an all-reduce, whose gradient passes unchanged), and one before a whole tensor that layers
// split by columns read (it passes unchanged, and its gradient is an all-reduce). Derivation turns them into
// c10d.allreduce_ ops, where they stand in the iteration.
#pragma once

#include "base/result.h"
#include "graph/graph.h"

namespace forerun::derive {

inline constexpr const char* kEnterGroup = "forerun.enter_tensor_group.default";
inline constexpr const char* kLeaveGroup = "forerun.leave_tensor_group.default";
inline constexpr const char* kGroupReduction = "c10d.allreduce_.default";

// The same graph for a group of one.
Result<Graph> tensor_parallel(const Graph& forward, int64_t gpus);

}  // namespace forerun::derive
