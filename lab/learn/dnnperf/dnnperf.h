// DNNPerf: iteration time or GPU memory from the computation graph (Gao et al., "Runtime Performance Prediction for
// Deep Learning Models with Graph Neural Network", ICSE-SEIP 2023).
//
// The graph of the forward model with node features (operator; hyper-parameters; sizes of weights, inputs, outputs and
// temporaries; FLOPs; device) and edge features (forward or backward; bytes delivered; bandwidth), min-max scaled. The
// attention-based node-edge encoder, in rounds: a node's attention over its neighbours follows from both ends and the
// edge (leaky ReLU, softmax over the neighbours); a node gathers messages made of the neighbour and the edge, weighted
// by attention; an edge is renewed from itself and its ends. The sum over nodes goes through an MLP to one number. One
// network for time, another for memory.
//
// What differs: the paper leaves widths, heads, rounds and the loss open; here 64 values, 4 heads, 3 rounds, and the
// absolute difference of logarithms. A node keeps its own value beside what it gathers (residual), so that sums over
// nodes see every node; sums enter the MLP as ln(1 + x). Nodes are dispatched PyTorch ops in place of layers, and see
// the run's precision and optimizer as part of the runtime configuration. Amounts are features as they are and as
// logarithms.
//
// The paper's ablations are settings: encoder=gat (nodes alone, no edge features), encoder=concat (edge features go
// into messages as they are, and are never renewed), scaler=standard, tensor_cost=no, readout=mean. On run records
// scaler=standard learns faster than the paper's min-max scaling, which leaves large amounts' columns near 0.
#pragma once

#include "lab/learn/graph_predictor.h"

namespace forerun::learn {

GraphSystem dnnperf_system();

}  // namespace forerun::learn
