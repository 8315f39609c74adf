// OpScales: how long the ops of a trace and the gaps behind them would take by rule of thumb; what ETS with the target
// `ratio` learns the ratio to.
//
// A recurrent network's outputs are bounded by what it saw, so one that gives times is far too low for layers that are larger
// than any in training. The ratio to a roofline hardly depends on size, and the roofline carries it on. Times: the roofline
// of lab/trees/op_figures.h and a convolution's bias; linear layers as in lab/trees/linear_layers.h. Gaps: a constant
// that the host takes, which is to be learned, and work that the traces do not show, which is added: backward of linear
// layers and concatenations, found as in lab/trees/trace_lanes.h. Multiples of the roofline for that are round figures
// from the T4's training traces; nothing depends on what was measured.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/dataset/dataset.h"

namespace forerun::learn {

struct OpScale {
  double time_us = 1;
  double gap_us = 1;
  double untraced_us = 0;  // of the gap, besides gap_us
  bool bias = false;       // of a linear layer
  bool repeats = false;    // the op before once more
};

// Scales of the ops at these places of the example, in their order.
std::vector<OpScale> scales_of(const DataSet& data, const Example& example, std::span<const uint32_t> places);

// What the network is told of a scale, brought to a range like that of standard-scaled features.
inline constexpr size_t kScaleColumns = 4;
void add_scale_columns(const OpScale& scale, std::vector<float>& out);

}  // namespace forerun::learn
