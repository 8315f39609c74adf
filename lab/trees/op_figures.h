// OpFigures: what an op of an ETS trace has to do, put together from the authors' parameters.
//
// Convolutions (203) and linear layers (201) as products C[m, n] += A[m, k] B[k, n] by group, with bytes of input, output
// and weight; other ops by their elements. `roofline_us` is the larger of computation and memory access at round figures
// of a T4, for linear layers their sum and a constant (a baseline that trees learn the ratio to: what it is off by does not
// matter, how it scales does). Convolutions without groups are computed in tiles of 64 by 64, as many at a time as there are
// multiprocessors: small ones take as long as a whole round.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "lab/dataset/dataset.h"

namespace forerun::learn {

struct OpFigures {
  double m = 1, n = 1, k = 1;  // of a product; 1 for other ops
  double groups = 1;
  double flops = 0;
  double bytes = 0;
  double input_bytes = 0, output_bytes = 0, weight_bytes = 0;  // of a product
  double elements = 1;                                         // of other ops
  double channels_in = 0, channels_out = 0;                    // of a convolution, by group
  double images = 0, kernel = 0, stride = 0;                   // of a convolution; kernel: places of its window
  double input_places = 0, output_places = 0;                  // of a convolution: height times width
  // Of a convolution, for each of kTiles: rounds of tiles over the multiprocessors (forward, gradient of the input), tiles of
  // the weight's gradient, and what each of the three takes at the peak.
  struct Tiled {
    double forward = 1, input = 1, weight = 1;
    double forward_us = 0, input_us = 0, weight_us = 0;
  };
  std::array<Tiled, 3> tiled = {};
  double roofline_us = 0;
  double bias_us = 0;      // that adding a convolution's bias takes, or summing its gradient
  bool bias = false;       // of a linear layer (linear_layers.h): only passes over its output
  double backward_us = 0;  // of a linear layer's product (linear_layers.h): both gradients
};

// The authors' numbers of what is a product.
inline constexpr std::string_view kConvolution = "203";
inline constexpr std::string_view kLinear = "201";

inline constexpr std::array<double, 3> kTiles = {32, 64, 128};

// Multiprocessors of a GPU that the authors took traces on; of a T4 where it is another.
double multiprocessors_of(std::string_view device);

// `name`: of the op, as the data set has it. Biases are not known from an op alone: see set_biases.
OpFigures figures_of(const OpRow& row, std::string_view name, double multiprocessors = 40);

// Whether a convolution has a bias is not among the authors' parameters, but shows beside it: one with batch normalization
// behind it (in backward: before it) has none, and neither have those of DenseNet, before concatenation or pooling. All
// others are taken to have one. `names` and `figures` are those of a trace, in order.
void set_biases(std::span<const std::string_view> names, std::span<const Phase> phases, std::span<OpFigures> figures);

// Columns that trees ask for, `kFigureColumns` of them: logarithms of the figures and of the raw parameters, ratios,
// remainders (kernels come in tiles), and what makes cuDNN choose among its algorithms.
inline constexpr size_t kFigureColumns = 2 + 17 + 17 + 14 + 15;
void add_figure_columns(const OpRow& row, const OpFigures& figures, std::vector<float>& out);

}  // namespace forerun::learn
