// What one iteration moves between a GPU and its memory, beside its second-level cache.
//
// An op reads its inputs and writes its outputs. How much of a read comes from memory depends on how many bytes were
// touched since its storage was last used, how much of a write goes there on how large it is, against a part of the
// cache: smooth steps, since caches are shared by many blocks. How often an op's kernels pass over its operands differs
// by kind, which host_rates.h fits. Left out: where allocations lie, what kernels keep beside operands.
#pragma once

#include <vector>

#include "base/quantity.h"
#include "graph/graph.h"
#include "testbed/host_rates.h"

namespace forerun::scale {

// Bytes of each op of the forward and the backward pass by kTraffic; nothing of the update.
std::vector<Traffic> op_traffic(const Graph& graph, Bytes cache);

// Their sum, with the gradients' own at the end.
Traffic memory_traffic(const Graph& graph, Bytes cache);

}  // namespace forerun::scale
