// The baselines of the DNNPerf paper that are networks, and the grouping GCN of the ETS paper: one number a graph.
//
// Their features are standard-scaled: the papers leave that open, and on run records it validates far better than
// min-max scaling (memory by the MLP after 30 epochs: 18 % in place of 35 %).
#pragma once

#include "lab/learn/graph_predictor.h"

namespace forerun::learn {

GraphSystem mlp_system();
GraphSystem birnn_system();
GraphSystem arnn_system();
GraphSystem brp_nas_system();
GraphSystem grouping_gcn_system();

}  // namespace forerun::learn
