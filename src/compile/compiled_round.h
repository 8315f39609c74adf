// CompiledRound: what becomes of the forward and the backward graph of a round: kernels in the order in which they run, and whose memory
// they take over.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/fusion.h"
#include "compile/joint_graph.h"
#include "graph/graph.h"
#include "graph/training_run.h"

namespace forerun::compile {

struct CompiledPass {
  std::vector<Kernel> kernels;
  std::vector<ValueId> takes;  // by value: whose memory it takes over
};

struct CompiledRound {
  Round round;
  JointGraph joint;
  std::vector<bool> kept;
  CompiledPass forward;
  CompiledPass backward;
};

// `found` is told what is kept and how much there is to compile.
CompiledRound compiled_round(const Graph& eager, Round round, CompiledParts& found);

// The bytes that a value takes up.
int64_t memory_of(const Graph& eager, const Value& value);

}  // namespace forerun::compile
