// Expert parallelism: from a forward graph with experts to the one of a GPU that holds some of them.
//
// Source: Lepikhin et al., GShard (2020), as Megatron and torchtitan have it. Each of N data-parallel GPUs holds 1/N of every
// layer's experts. Rows that a router gave to experts go to the GPUs that hold these (an all-to-all before the first grouped
// product) and come back (one behind the last); gradients go the same ways. As many rows as a GPU sends it gets: tokens are
// taken to be spread evenly over the experts, and what the GPUs first tell each other of numbers of rows is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "graph/graph.h"

namespace forerun::derive {

inline constexpr const char* kSwapRows = "forerun.swap_rows.default";
inline constexpr const char* kRowSwap = "c10d.alltoall_base_.default";  // as it is dispatched

// The same graph for a group of one. An Error where there are no experts, or they do not divide.
Result<Graph> expert_parallel(const Graph& forward, int64_t gpus);

// Of a layer; 1: none.
int64_t experts_of(const Graph& forward);

// Whether the second operand is the weights of experts.
bool is_expert_product(std::string_view op_name);

// Which operand of an op is weights that can be dealt out: those of experts, or a table whose rows are summed; nothing: none is.
std::optional<size_t> dealt_operand(std::string_view op_name);

// Tables whose rows are summed; where the model is DLRM's, they can be dealt out like experts (zoo/dlrm.cpp).
int64_t summed_tables(const Graph& forward);

}  // namespace forerun::derive
