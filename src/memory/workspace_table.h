// WorkspaceTable: how much memory cuDNN's convolutions and recurrent layers take while they run.
//
// Convolutions are as measured (convolution_cases.h). Recurrent layers follow a formula with two variants; a decision tree
// over shapes, fitted to single-op measurements (op/1 samples), tells which. Without a file the table is empty: it says
// nothing of convolutions, and that no recurrent kernel is persistent.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "memory/convolution_cases.h"

namespace forerun {

class JsonObject;

struct RecurrentShape {
  int kind = 2;  // as cuDNN numbers them: 0 and 1 without gates, 2 LSTM, 3 GRU
  int64_t element = 4;
  int64_t batch = 1, steps = 1, input = 1, hidden = 1, layers = 1, directions = 1;
  int64_t weight_bytes = 0;  // of all layers
};

class WorkspaceTable {
 public:
  static Result<WorkspaceTable> load(const std::filesystem::path& path);
  // Without what was seen in models of a family, to be judged on it.
  void leave_out(std::string_view family) { cases_.leave_out(family); }

  // Bytes; nothing where the table says nothing.
  [[nodiscard]] std::optional<int64_t> convolution(ConvolutionPass pass, const ConvolutionShape& shape) const {
    return cases_.bytes(pass, shape);
  }
  // Bytes of cuDNN's workspace for a recurrent layer. The formula is known; the tree tells whether cuDNN keeps weights
  // on the multiprocessors (persistent kernels), which takes more.
  [[nodiscard]] int64_t recurrent(const RecurrentShape& shape) const;

 private:
  struct Node {
    int feature = -1;  // -1: a leaf
    double at = 0;     // up to here `below`, beyond `above`
    uint32_t below = 0, above = 0;
    bool persistent = false;  // of a leaf
  };
  using Tree = std::vector<Node>;
  static Tree read_tree(std::vector<JsonObject> nodes);
  static const Node& leaf(const Tree& tree, std::span<const double> features);

  ConvolutionCases cases_;
  Tree recurrent_;
};

}  // namespace forerun
