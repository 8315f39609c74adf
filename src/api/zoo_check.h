// How well the zoo and the derivation reproduce what PyTorch really dispatched: recorded runs against derived ones.
#pragma once

#include <string>

#include "base/result.h"
#include "graph/graph.h"
#include "report/zoo_check.h"

namespace forerun {

// Compares every record of a run/1 file that has a graph and whose family is in the zoo.
// Two ops are counterparts if name, phase, and the types and shapes of all inputs and outputs agree.
Result<ZooCheck> check_zoo(const std::string& path);

// The counterpart key of an op.
std::string signature(const Graph& graph, const Op& op);

}  // namespace forerun
