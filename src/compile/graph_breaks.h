// Where Dynamo cannot trace on, and the pieces that are compiled of a model instead.
//
// A graph ends at an op whose result Python has to see (a number that decides which way to go, a result whose size depends on
// values) and at what the compiler refuses; that op runs eagerly. A frame that is not traced whole is not traced into by its caller either:
// the graph also ends where a module is entered and left in which it breaks. Each stretch between is compiled with the part
// of the backward pass that belongs to it; gradients that meet between pieces are added eagerly. A frame that calls a recurrent layer is not
// compiled at all, but for the models that it calls. Where the model was captured with Dynamo (DynamoTrace), its pieces are those that it
// traced, and ops tell only what the compiler behind it refuses. Sources: torch/_dynamo/symbolic_convert.py (inlined frames restart at the outermost
// one), variables/nn_module.py (recurrent layers) and skipfiles.py of PyTorch 2.11. Left out, without Dynamo: breaks that Python alone decides
// (a logger, a lock): the ops do not show them.
#pragma once

#include <string>
#include <vector>

#include "compile/joint_graph.h"

namespace forerun::compile {

// The whole of a micro-batch, or, where the graph breaks, its pieces in the order of their forward passes; `breaks` is given where and why.
// `dynamo`: what Dynamo itself made of the model, or null; then ops alone tell where it breaks.
std::vector<Round> pieces_of(const Graph& graph, Round whole, const DynamoTrace* dynamo,
                             std::vector<GraphBreak>& breaks);

}  // namespace forerun::compile
