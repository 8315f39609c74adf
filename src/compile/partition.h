// Partition: what of the forward pass is kept for the backward pass, and what is computed again there.
//
// AOTAutograd's min-cut: every value costs its bytes to keep (more, the farther it is from the backward pass; twice, if
// nobody needs it stored anyway; nothing for parameters), and the cheapest set that separates what cannot be computed again
// from the backward pass is kept. Not computed again: calls of libraries, random numbers, what the backward pass needs stored,
// results a quarter as large as what they are made of, and what lies beyond an op that cannot be fused. Rules and constants from
// torch/_functorch/partitioners.py of PyTorch 2.13. Left out: activation budgets, checkpoint marks of the user.
#pragma once

#include <vector>

#include "compile/joint_graph.h"

namespace forerun::compile {

struct Partition {
  std::vector<bool> kept;         // by value: made in the forward pass or given, read in the backward pass
  std::vector<bool> in_forward;   // by node
  std::vector<bool> in_backward;  // by node; a node computed again is in both
};

Partition partition(const JointGraph& joint);

}  // namespace forerun::compile
