#include "cost/trees/forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/little_endian.h"

namespace forerun {
namespace {

constexpr uint32_t kMostTrees = 1U << 20;
constexpr size_t kMostNodes = Forest::kLeaf;  // of one tree
constexpr size_t kAbreast = 8;                // rows that walk a tree side by side
constexpr uint8_t kShortLeaf = 0xFF;          // in place of a column

Error broken(std::string what) { return {std::move(what), "", "train the model again, or fetch the file again"}; }

// What both forms begin with.
struct Head {
  float base = 0;
  std::vector<uint32_t> sizes;  // of the trees, in nodes
  size_t nodes = 0;             // of all
};

Result<Head> take_head(std::string_view& bytes) {
  Head head;
  uint32_t trees = 0;
  if (!take_little(bytes, head.base) || !take_little(bytes, trees) || trees > kMostTrees) {
    return broken("a forest's head is broken");
  }
  head.sizes.resize(trees);
  for (uint32_t& size : head.sizes) {
    if (!take_little(bytes, size) || size > kMostNodes) return broken("a forest's trees are broken");
    head.nodes += size;
  }
  return head;
}

}  // namespace

Status Forest::add_tree(std::span<const Node> nodes) {
  nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
  return close_tree(nodes.size());
}

Status Forest::close_tree(size_t size) {
  const std::span<Node> nodes = std::span(nodes_).last(size);
  if (nodes.empty() || nodes.size() > kMostNodes) return broken(fmt::format("a tree has {} nodes", nodes.size()));
  std::array<uint16_t, kMostNodes> depths;
  std::fill_n(depths.begin(), nodes.size(), uint16_t{0});
  uint16_t deepest = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].column == kLeaf) {
      nodes[i].left = static_cast<uint16_t>(i);
      continue;
    }
    if (nodes[i].left <= i || nodes[i].left + size_t{1} >= nodes.size()) {
      return broken(fmt::format("node {} of a tree has child {} of {}", i, nodes[i].left, nodes.size()));
    }
    columns_ = std::max(columns_, static_cast<uint16_t>(nodes[i].column + 1));
    const auto below = static_cast<uint16_t>(depths[i] + 1);
    deepest = std::max(deepest, below);
    for (const size_t child : {size_t{nodes[i].left}, nodes[i].left + size_t{1}}) {
      depths[child] = std::max(depths[child], below);
    }
  }
  roots_.push_back(static_cast<uint32_t>(nodes_.size() - nodes.size()));
  depths_.push_back(deepest);
  return {};
}

float Forest::predict(std::span<const float> row) const {
  CHECK(row.size() >= columns_, "a row lacks columns that a forest asks for");
  double sum = base_;
  for (const uint32_t root : roots_) {
    const Node* tree = nodes_.data() + root;
    const Node* node = tree;
    while (node->column != kLeaf) node = tree + node->left + (row[node->column] < node->value ? 0 : 1);
    sum += node->value;
  }
  return static_cast<float>(sum);
}

std::vector<float> Forest::predict_all(std::span<const float> rows, size_t width) const {
  CHECK(width >= std::max<size_t>(columns_, 1), "rows lack columns that a forest asks for");
  const size_t count = rows.size() / width;
  std::vector<double> sums(count, base_);
  std::array<const float*, kAbreast> values;
  std::array<uint32_t, kAbreast> at;
  for (size_t tree = 0; tree < roots_.size(); ++tree) {
    const Node* nodes = nodes_.data() + roots_[tree];
    for (size_t first = 0; first < count; first += kAbreast) {
      const size_t abreast = std::min(kAbreast, count - first);
      for (size_t r = 0; r < kAbreast; ++r) {
        values[r] = rows.data() + (first + std::min(r, abreast - 1)) * width;
        at[r] = 0;
      }
      for (uint16_t step = 0; step < depths_[tree]; ++step) {
        for (size_t r = 0; r < kAbreast; ++r) {
          const Node node = nodes[at[r]];
          const auto inner = static_cast<uint32_t>(node.column != kLeaf);
          const auto right = static_cast<uint32_t>(!(values[r][node.column * inner] < node.value));
          at[r] = node.left + (inner & right);
        }
      }
      for (size_t r = 0; r < abreast; ++r) sums[first + r] += nodes[at[r]].value;
    }
  }
  return {sums.begin(), sums.end()};
}

void Forest::write(std::string& bytes) const {
  put_little(bytes, base_);
  put_little(bytes, static_cast<uint32_t>(roots_.size()));
  for (size_t tree = 0; tree < roots_.size(); ++tree) {
    const size_t end = tree + 1 < roots_.size() ? roots_[tree + 1] : nodes_.size();
    put_little(bytes, static_cast<uint32_t>(end - roots_[tree]));
  }
  // Column by column: alike bytes beside each other pack better.
  for (const Node& node : nodes_) put_little(bytes, node.column);
  for (const Node& node : nodes_) put_little(bytes, node.column == kLeaf ? uint16_t{0} : node.left);
  for (const Node& node : nodes_) put_little(bytes, node.value);
}

Result<Forest> Forest::read(std::string_view& bytes) {
  const Result<Head> head = take_head(bytes);
  if (!head) return head.error();
  const size_t total = head->nodes;
  if (bytes.size() < total * 8) return broken("a forest ends too early");
  const char* columns = bytes.data();
  const char* children = columns + total * 2;
  const char* values = children + total * 2;
  Forest forest(head->base);
  forest.nodes_.reserve(total);
  forest.roots_.reserve(head->sizes.size());
  forest.depths_.reserve(head->sizes.size());
  for (const uint32_t size : head->sizes) {
    for (uint32_t i = 0; i < size; ++i) {
      const Node node{little_at<float>(values), little_at<uint16_t>(columns), little_at<uint16_t>(children)};
      if (node.column == kLeaf && node.left != 0) return broken("a leaf of a tree has a child");
      forest.nodes_.push_back(node);
      columns += 2;
      children += 2;
      values += 4;
    }
    if (Status closed = forest.close_tree(size); !closed.ok()) return closed.error();
  }
  bytes.remove_prefix(total * 8);
  return forest;
}

namespace {

// The nodes of a tree, level by level.
std::vector<size_t> level_order(std::span<const Forest::Node> tree) {
  std::vector<size_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const Forest::Node& node = tree[order[i]];
    if (node.column == Forest::kLeaf) continue;
    order.push_back(node.left);
    order.push_back(node.left + size_t{1});
  }
  return order;
}

}  // namespace

void Forest::write_by_level(std::string& bytes) const {
  CHECK(columns_ <= kShortLeaf, "a column does not go into a byte");
  std::string sizes;
  std::string columns;
  std::string thresholds;
  std::string leaves;
  for (size_t tree = 0; tree < roots_.size(); ++tree) {
    const std::span<const Node> nodes = std::span(nodes_).subspan(roots_[tree]);
    const std::vector<size_t> order = level_order(nodes);
    put_little(sizes, static_cast<uint32_t>(order.size()));
    for (const size_t place : order) {
      const Node& node = nodes[place];
      columns.push_back(static_cast<char>(node.column == kLeaf ? kShortLeaf : node.column));
      put_little(node.column == kLeaf ? leaves : thresholds, node.value);
    }
  }
  put_little(bytes, base_);
  put_little(bytes, static_cast<uint32_t>(roots_.size()));
  bytes += sizes + columns + thresholds + leaves;
}

Result<Forest> Forest::read_by_level(std::string_view& bytes) {
  const Result<Head> head = take_head(bytes);
  if (!head) return head.error();
  const size_t total = head->nodes;
  if (bytes.size() < total * 5) return broken("a forest ends too early");
  const std::string_view columns = bytes.substr(0, total);
  const auto leaf_count =
      static_cast<size_t>(std::count(columns.begin(), columns.end(), static_cast<char>(kShortLeaf)));
  const char* threshold = bytes.data() + total;
  const char* leaf = threshold + (total - leaf_count) * 4;
  Forest forest(head->base);
  forest.nodes_.reserve(total);
  forest.roots_.reserve(head->sizes.size());
  forest.depths_.reserve(head->sizes.size());
  size_t at = 0;
  for (const uint32_t size : head->sizes) {
    uint32_t child = 1;
    for (uint32_t i = 0; i < size; ++i, ++at) {
      const uint16_t column = static_cast<uint8_t>(columns[at]);
      const bool is_leaf = column == kShortLeaf;
      const char*& value = is_leaf ? leaf : threshold;
      Node node{little_at<float>(value)};
      if (!is_leaf) node = {node.value, column, static_cast<uint16_t>(std::min<uint32_t>(child, kLeaf))};
      forest.nodes_.push_back(node);
      value += 4;
      if (!is_leaf) child += 2;
    }
    // Every node but the root is a child.
    if (child != size) return broken(fmt::format("a tree has {} nodes where it has {}", child, size));
    if (Status closed = forest.close_tree(size); !closed.ok()) return closed.error();
  }
  bytes.remove_prefix(total * 5);
  return forest;
}

}  // namespace forerun
