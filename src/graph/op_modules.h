// Which module of the model each op belongs to: backward ops belong to the module of the forward op they differentiate,
// which captures name by its autograd sequence number. Ops of the update, and those nothing is known of, keep their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace forerun {

// By op.
std::vector<NameId> op_modules(const Graph& graph);

// The block that a module or parameter belongs to: its name up to the first part that is a number, as layers of a list
// are called: "layer1.0" of "layer1.0.conv2", "transformer.h.11" of "transformer.h.11.mlp.c_fc.weight". Empty where no
// part is a number, or where nothing lies below it (the layer itself is one op: "features.0").
std::string_view block_of(std::string_view module);

// "transformer.h.*.mlp" of "transformer.h.11.mlp": layers of a list under one name.
std::string folded_module(std::string_view module);

}  // namespace forerun
