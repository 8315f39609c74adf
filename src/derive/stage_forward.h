// A stage of a pipeline: ops of a model's forward graph that stand in a row, as a forward graph of their own.
//
// What they read of earlier stages becomes an input. What depends on weights there is received with every micro-batch and gets a
// gradient back; the rest (positions, masks) is taken to be there, as every stage can make it. A weight that several stages read is
// held by each.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace forerun::derive {

struct StageForward {
  Graph graph;                     // its results are handed on to the next stage; of the last one they are the model's
  std::vector<TensorId> received;  // by the stage, with every micro-batch
  bool last = true;
};

// Of the ops from `begin` on, before `end`.
StageForward stage_forward(const Graph& forward, size_t begin, size_t end);

}  // namespace forerun::derive
