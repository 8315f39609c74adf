#include "cost/trees/complete_forest.h"

#include <algorithm>
#include <array>

namespace forerun {

RowBlocks::RowBlocks(std::span<const float> rows, size_t width) : count_(rows.size() / width), width_(width) {
  const size_t blocks = (count_ + kRows - 1) / kRows;
  values_.resize(blocks * kRows * width);
  float* to = values_.data();
  for (size_t first = 0; first < count_; first += kRows) {
    for (size_t column = 0; column < width; ++column) {
      for (size_t r = 0; r < kRows; ++r) *to++ = rows[std::min(first + r, count_ - 1) * width + column];
    }
  }
}

std::optional<CompleteForest> CompleteForest::of(const Forest& forest) {
  constexpr size_t kMostColumns = 256;
  if (forest.columns() > kMostColumns) return std::nullopt;
  CompleteForest complete;
  complete.base_ = forest.base();
  complete.width_ = forest.columns();
  complete.trees_.reserve(forest.tree_count());
  for (size_t i = 0; i < forest.tree_count(); ++i) {
    const uint16_t depth = forest.depth(i);
    if (depth > kDeepest) return std::nullopt;
    complete.add(forest.tree(i), depth);
  }
  return complete;
}

void CompleteForest::add(std::span<const Forest::Node> tree, uint16_t depth) {
  trees_.push_back({depth, static_cast<uint32_t>(thresholds_.size()), static_cast<uint32_t>(leaves_.size())});
  std::array<uint16_t, size_t{1} << kDeepest> level{};  // the nodes of a level; a leaf stands for itself below
  std::array<uint16_t, size_t{1} << kDeepest> below{};
  for (uint16_t step = 0; step < depth; ++step) {
    for (size_t place = 0; place < size_t{1} << step; ++place) {
      const Forest::Node& node = tree[level[place]];
      const bool inner = node.column != Forest::kLeaf;
      thresholds_.push_back(inner ? node.value : 0);
      columns_.push_back(static_cast<uint8_t>(inner ? node.column : 0));
      below[2 * place] = node.left;
      below[2 * place + 1] = static_cast<uint16_t>(node.left + (inner ? 1 : 0));
    }
    std::swap(level, below);
  }
  for (size_t place = 0; place < size_t{1} << depth; ++place) leaves_.push_back(tree[level[place]].value);
}

std::vector<float> CompleteForest::predict_all(const RowBlocks& rows) const {
  constexpr size_t kRows = RowBlocks::kRows;
  CHECK(rows.width() >= std::max<size_t>(width_, 1), "rows lack columns that a forest asks for");
  const size_t count = rows.row_count();
  std::vector<double> sums((count + kRows - 1) / kRows * kRows, base_);
  for (const Tree& tree : trees_) {
    const float* thresholds = thresholds_.data() + tree.first;
    const uint8_t* columns = columns_.data() + tree.first;
    const float* leaves = leaves_.data() + tree.leaves;
    const uint32_t first_leaf = (1U << tree.depth) - 1;
    for (size_t block = 0; block * kRows < count; ++block) {
      const float* values = rows.block(block);
      std::array<uint32_t, kRows> at{};
      if (tree.depth > 0) {
        const float* column = values + columns[0] * kRows;
        for (size_t r = 0; r < kRows; ++r) at[r] = 1 + static_cast<uint32_t>(!(column[r] < thresholds[0]));
      }
      for (uint32_t step = 1; step < tree.depth; ++step) {
#pragma GCC unroll 8
        for (size_t r = 0; r < kRows; ++r) {
          const uint32_t node = at[r];
          const bool right = !(values[columns[node] * kRows + r] < thresholds[node]);
          at[r] = 2 * node + 1 + static_cast<uint32_t>(right);
        }
      }
      double* sum = sums.data() + block * kRows;
      for (size_t r = 0; r < kRows; ++r) sum[r] += leaves[at[r] - first_leaf];
    }
  }
  return {sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace forerun
