// Forest: an ensemble of regression trees, ready to be asked. Trees are grown elsewhere (XGBoost, lab/trees/hybrid_training.h);
// here they are flat nodes, so that a thousand ops take a few milliseconds and no library.
//
//   prediction = base + sum over trees of the leaf that the row falls into; at a node, left if value < threshold
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace forerun {

class Forest {
 public:
  static constexpr uint16_t kLeaf = 0xFFFF;

  struct Node {
    float value = 0;          // threshold, or what a leaf adds
    uint16_t column = kLeaf;  // that is compared
    uint16_t left = 0;        // child, counted from the tree's first node; the right one follows it; 0 of a leaf
    bool operator==(const Node&) const = default;
  };

  Forest() = default;
  explicit Forest(float base) : base_(base) {}

  // Appends a tree, its nodes numbered from 0 at the root. An Error if a child is not behind its parent.
  Status add_tree(std::span<const Node> nodes);

  // `row` has a value for every column that a tree asks for; NaN goes right.
  [[nodiscard]] float predict(std::span<const float> row) const;
  // Many rows of `width` values, one behind the other: the same figures, sooner. Tree after tree is walked for several
  // rows side by side, so that no row waits for another and a tree is fetched from memory once.
  [[nodiscard]] std::vector<float> predict_all(std::span<const float> rows, size_t width) const;

  [[nodiscard]] size_t tree_count() const { return roots_.size(); }
  [[nodiscard]] size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] float base() const { return base_; }
  [[nodiscard]] uint16_t columns() const { return columns_; }  // one more than the highest that is asked for
  [[nodiscard]] uint16_t depth(size_t tree) const { return depths_[tree]; }  // steps from its root to its deepest leaf
  // Its nodes; a leaf is its own left child.
  [[nodiscard]] std::span<const Node> tree(size_t tree) const {
    const size_t end = tree + 1 < roots_.size() ? roots_[tree + 1] : nodes_.size();
    return std::span(nodes_).subspan(roots_[tree], end - roots_[tree]);
  }

  // Little-endian bytes, the same on every machine; appended to `bytes`.
  void write(std::string& bytes) const;
  // Takes them from the front of `bytes`.
  static Result<Forest> read(std::string_view& bytes);

  // A form that packs smaller: nodes are numbered level by level, so that children follow from their order; columns in a byte,
  // thresholds and leaves apart. At most 255 columns.
  void write_by_level(std::string& bytes) const;
  static Result<Forest> read_by_level(std::string_view& bytes);

 private:
  // Makes a tree of the last `size` nodes. After an Error the forest is of no use.
  Status close_tree(size_t size);

  float base_ = 0;
  uint16_t columns_ = 0;
  std::vector<uint32_t> roots_;
  std::vector<uint16_t> depths_;  // steps from a tree's root to its deepest leaf
  std::vector<Node> nodes_;       // a leaf is its own left child
};

}  // namespace forerun
