// Decomposition: one dispatched op as the nodes that Inductor makes of it.
//
// Norms become statistics and elementwise work, softmax two reductions and elementwise work, an embedding's gradient a
// fill and a scatter; what is in no rule and no class of elementwise work stays a call of a library. Rules from
// torch/_inductor/decomposition.py, torch/_decomp and torch/_inductor/lowering.py of PyTorch 2.13; what may be computed again and what
// is fused in the partitioner's eyes from get_default_op_list of torch/_functorch/partitioners.py.
#pragma once

#include <span>
#include <vector>

#include "compile/joint_graph.h"
#include "compile/node_builder.h"

namespace forerun::compile {

// Whether a convolution's backward op also gives the gradient of a bias, its last output: that is a reduction of its own, and the library is
// not asked for it.
bool gives_bias_gradient(const Graph& graph, const Op& op);

// The values of the op's outputs; `reads` are its inputs. An output that is nothing (an unused statistic) is invalid.
std::vector<ValueId> decompose(NodeBuilder& build, const Op& op, std::span<const Read> reads);

}  // namespace forerun::compile
