// Where Inductor lays images with their channels last, and where it pads products.
//
// Sources, of PyTorch 2.13: GraphLowering.decide_layout_opt in torch/_inductor/graph.py; is_mm_compute_bound in
// torch/_inductor/fx_passes/pad_mm.py. Left out: whether a padded product was the faster one when both were tried, which is taken
// for granted; views, which its count of nodes has and ours has not.
#pragma once

#include "compile/joint_graph.h"
#include "graph/graph.h"

namespace forerun::compile {

// Whether convolutions of images run with their channels last, whatever the model does: not where a convolution has groups of
// several channels, takes in twice as many channels as it gives out, all are narrow, or one stands among 300 other calls.
bool lays_channels_last(const Graph& eager, const Round& round);

// Whether a product of 16 bits is padded to multiples of eight: where it computes more than it moves.
bool pads_product(const Graph& eager, const Op& op);

}  // namespace forerun::compile
