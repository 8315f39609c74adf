// ConvolutionShape: what decides which memory a convolution needs beside its results.
#pragma once

#include <compare>
#include <cstdint>

namespace forerun {

enum class ConvolutionPass : uint8_t { convolution, input_gradient, weight_gradient };

struct ConvolutionShape {
  bool half = false;  // two bytes an element
  bool channels_last = false;
  bool transposed = false;
  int64_t groups = 1;
  int64_t batch = 1, channels = 1, filters = 1;    // of input and output
  int64_t kernel = 1, kernel_height = 1;           // elements of the window; its first extent
  int64_t stride = 1, dilation = 1, padding = 0;   // the largest over dimensions
  int64_t image = 1, out_image = 1, in_width = 1;  // elements of a channel of input and output; last extent

  auto operator<=>(const ConvolutionShape&) const = default;
};

// Bytes of the tensors of a convolution.
struct ConvolutionSizes {
  double input = 0, output = 0, weight = 0;
  double padded_input = 0, padded_output = 0, padded_weight = 0;  // with channels of each group rounded up
  double element = 4;

  [[nodiscard]] double all() const { return input + output + weight; }
  [[nodiscard]] double float_weight() const { return weight * 4 / element; }
};

// Channels of a group are rounded up to 4 (float32) or 8 (half precision).
ConvolutionSizes sizes_of(const ConvolutionShape& shape);

}  // namespace forerun
