// The columns that the forests of `trees` ask for: of an op by itself, of its direct neighbours, and of the trace around
// it. Trained forests know columns by their place: a change here asks for training anew.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/dataset/dataset.h"
#include "lab/trees/op_figures.h"
#include "lab/trees/trace_lanes.h"

namespace forerun::learn {

inline constexpr size_t kOpColumns = 4 + kFigureColumns;
void add_op_columns(const OpRow& row, const OpFigures& figures, const LaneOp& op, std::vector<float>& out);

// Whether the op repeats that before it, and kinds, rooflines and convolution outputs of those beside it.
inline constexpr size_t kNeighbourColumns = 2 + 2 * 4;
void add_neighbour_columns(std::span<const LaneOp> ops, std::span<const OpFigures> figures,
                           std::span<const uint32_t> rows, size_t at, std::vector<float>& out);

// Ten kinds and six times around the op, its own time, the guess and what it is made of (with the product whose backward was
// not traced), the balance of GPU and host
// behind and ahead, the place in the trace.
inline constexpr size_t kContextColumns = 10 + 7 + 5 + 2 + 7 + 1;
class Context {
 public:
  Context(std::span<const LaneOp> ops, std::span<const OpFigures> figures, std::span<const LaneGuess> guesses);
  void add_columns(size_t at, std::vector<float>& out) const;

 private:
  [[nodiscard]] double balance(size_t first, size_t last) const;  // GPU work over host work, as a logarithm

  std::span<const LaneOp> ops_;
  std::span<const OpFigures> figures_;
  std::span<const LaneGuess> guesses_;
  std::vector<double> gpu_, host_;  // work before each op
};

}  // namespace forerun::learn
