// LayoutTracker: how tensors lie in memory, as far as kernels care, followed through an iteration op by op.
//
// From strides where the graph has them. Where it has none (run/1) they are inferred, op by op (stride_rules.h); in a
// channels-last run the images and the weights of convolutions are taken to begin so.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace forerun {

struct Layout {
  bool permuted = false;       // elements do not follow each other in the order of the dimensions
  bool expanded = false;       // a dimension repeats the same elements
  bool sliced = false;         // part of a larger tensor, with gaps
  bool channels_last = false;  // [N, C, H, W] stored as [N, H, W, C]; not counted as permuted
};

class LayoutTracker {
 public:
  enum class Evidence : uint8_t { strides, ops };  // ops: infers even where there are strides

  LayoutTracker(const Graph& graph, bool channels_last, Evidence evidence = Evidence::strides);

  // Of an operand of the op that is passed next.
  [[nodiscard]] Layout of(TensorId tensor) const;
  void pass(const Op& op);

 private:
  [[nodiscard]] bool has_strides(TensorId tensor) const;
  [[nodiscard]] Shape strides_of(TensorId tensor) const;

  const Graph& graph_;
  bool channels_last_;
  Evidence evidence_;
  std::vector<Shape> inferred_;  // by tensor, where it has no strides; empty: not made by an op yet
};

// What strides say.
Layout layout_of(std::span<const int64_t> shape, std::span<const int64_t> strides);

}  // namespace forerun
