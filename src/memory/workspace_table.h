// WorkspaceTable: how much memory cuDNN's convolutions were measured to take while they run.
//
// cuDNN chooses an algorithm by rules of its own. What it then asks for is mostly copies of input, output and weight in
// another layout, padded to 4 (float32) or 8 (half precision) channels a group. A decision tree over shapes, fitted to
// single-op measurements (op/1 samples), tells which. Recurrent layers follow a formula with two variants. Without a file
// the table is empty: it says nothing of convolutions, and that no recurrent kernel is persistent.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"

namespace forerun {

class JsonObject;

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
};

struct RecurrentShape {
  int kind = 2;  // as cuDNN numbers them: 0 and 1 without gates, 2 LSTM, 3 GRU
  int64_t element = 4;
  int64_t batch = 1, steps = 1, input = 1, hidden = 1, layers = 1, directions = 1;
  int64_t weight_bytes = 0;  // of all layers
};

class WorkspaceTable {
 public:
  static Result<WorkspaceTable> load(const std::filesystem::path& path);

  // Bytes; nothing where the table says nothing.
  [[nodiscard]] std::optional<int64_t> convolution(ConvolutionPass pass, const ConvolutionShape& shape) const;
  // Bytes of cuDNN's workspace for a recurrent layer. The formula is known; the tree tells whether cuDNN keeps weights
  // on the multiprocessors (persistent kernels), which takes more.
  [[nodiscard]] int64_t recurrent(const RecurrentShape& shape) const;

 private:
  // What a leaf says. Parts are input, output, weight (padded copies); all is their sum without padding.
  enum class Formula : uint8_t { none, parts, all, bytes, batched_weight, split_weight, persistent };
  struct Node {
    int feature = -1;  // -1: a leaf
    double at = 0;     // up to here `below`, beyond `above`
    uint32_t below = 0, above = 0;
    Formula formula = Formula::none;
    uint8_t parts = 0;  // bits: 1 input, 2 output, 4 weight
    double factor = 0;  // of all, bytes, split_weight
  };
  using Tree = std::vector<Node>;
  static bool read_formula(const std::string& text, Node& node);
  static Tree read_tree(std::vector<JsonObject> nodes, std::span<const char* const> features);
  static const Node& leaf(const Tree& tree, std::span<const double> features);

  std::array<Tree, 3> convolution_;  // by pass
  Tree recurrent_;
};

}  // namespace forerun
