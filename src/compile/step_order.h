// The order in which compiled passes and what runs beside them are issued.
//
// Of a model in one piece it is that of the eager iteration. Where graphs break there are several pieces, and a pass runs when all that
// it reads is there, which may be behind what stood among its ops.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "compile/compiled_round.h"
#include "graph/graph.h"

namespace forerun::compile {

// What runs, in order: a kernel of a round, or an op of the eager iteration.
struct Step {
  const Kernel* kernel = nullptr;
  size_t round = 0;
  size_t pass = 0;  // two of a round
  size_t op = 0;    // of the eager iteration: itself, or where the pass begins
  Phase phase = Phase::forward;
};

// The compiled pass of an op of the eager iteration: of round r, 2 r forward and 2 r + 1 backward.
std::optional<size_t> pass_of(const std::vector<CompiledRound>& rounds, size_t op);

// `steps`: passes where their first op stood, and what is outside of them. Nothing where pieces wait for one another in a circle.
std::optional<std::vector<Step>> in_order(const Graph& eager, std::vector<Step> steps,
                                          const std::vector<CompiledRound>& rounds);

}  // namespace forerun::compile
