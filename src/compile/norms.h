// Norms and their gradients as the nodes that Inductor makes of them: statistics, reductions, elementwise work between.
//
// Rules from torch/_decomp/decompositions.py and torch/_inductor/ir.py (num_splits) of PyTorch 2.11.
#pragma once

#include <string_view>

#include "compile/op_call.h"

namespace forerun::compile {

// `base`: the op's name without namespace and overload.
Outputs norm(const OpCall& call, std::string_view base);
Outputs norm_backward(const OpCall& call, std::string_view base);

}  // namespace forerun::compile
