// Whether a compiled graph gives its convolutions of images their channels last, whatever the model does.
//
// It does, unless convolutions are few among the ops, some are in groups of several channels, some make at most half the channels that
// they read, or all are narrow. Rules from decide_layout_opt of torch/_inductor/graph.py of PyTorch 2.11, which looks at the forward
// graph. Left out: how many nodes ops become exactly, of which only an estimate is needed.
#pragma once

#include "compile/joint_graph.h"

namespace forerun::compile {

bool puts_channels_last(const Graph& graph, const Round& round);

// Dimensions from the widest step in memory to the narrowest; without those of one element.
std::vector<size_t> dimension_order(const Graph& graph, TensorId id);

}  // namespace forerun::compile
