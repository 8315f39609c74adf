// CompleteForest: a forest laid out for being asked again and again, of many rows at a time.
//
// Every tree is filled up to a complete one: a leaf above the last level stands below as often as the level needs it. The children
// of node i are 2i + 1 and 2i + 2, so that a step down reads a column and a threshold and no child, all rows take the same steps,
// and eight walk side by side in registers; at the root, where all begin, one comparison serves them together. Says what Forest
// says, to the bit; laying it out costs as much as asking it a few rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cost/trees/forest.h"

namespace forerun {

// Rows in blocks of eight, column by column: the same column of all rows of a block lies together. The last block is filled up.
class RowBlocks {
 public:
  static constexpr size_t kRows = 8;  // of a block

  // `rows`: of `width` values each, one behind the other.
  RowBlocks(std::span<const float> rows, size_t width);

  [[nodiscard]] size_t row_count() const { return count_; }
  [[nodiscard]] size_t width() const { return width_; }
  [[nodiscard]] const float* block(size_t number) const { return values_.data() + number * width_ * kRows; }

 private:
  size_t count_, width_;
  std::vector<float> values_;
};

class CompleteForest {
 public:
  static constexpr uint16_t kDeepest = 8;  // steps from a root to its leaves: a level more takes twice the memory

  // Nothing where a tree is deeper, or asks for a column behind the 256th.
  static std::optional<CompleteForest> of(const Forest& forest);

  [[nodiscard]] std::vector<float> predict_all(const RowBlocks& rows) const;

 private:
  struct Tree {
    uint32_t depth = 0;
    uint32_t first = 0;  // among thresholds_ and columns_
    uint32_t leaves = 0;
  };
  void add(std::span<const Forest::Node> tree, uint16_t depth);

  float base_ = 0;
  uint16_t width_ = 0;  // columns that are asked for
  std::vector<Tree> trees_;
  std::vector<float> thresholds_;
  std::vector<uint8_t> columns_;
  std::vector<float> leaves_;
};

}  // namespace forerun
