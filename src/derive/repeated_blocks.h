// A model's forward graph without the blocks that only repeat: of equal blocks one behind the other, three stay.
//
// The 126 layers of a large model cost the same each; to know what a block costs, where the model begins, in its middle and
// where it ends, three of them are enough. Blocks are those of ModuleBlocks (graph/op_modules.h); equal are those whose ops agree
// in name, attributes and shapes one by one, and that read of the run's other blocks only what the one before made.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace forerun::derive {

struct ShortForward {
  Graph graph;
  std::string block;  // that stands for others too; empty: for none
  int64_t others = 0;
};

ShortForward without_repeats(const Graph& forward);

}  // namespace forerun::derive
