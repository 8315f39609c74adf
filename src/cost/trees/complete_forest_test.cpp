#include "cost/trees/complete_forest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace forerun {
namespace {

using Node = Forest::Node;
constexpr size_t kWidth = 6;

// Nodes in the order in which they are split; every second one of those that may be is.
std::vector<Node> random_tree(std::mt19937& random, int deepest) {
  std::vector<Node> tree(1);
  std::vector<int> depths(1);
  for (size_t i = 0; i < tree.size(); ++i) {
    const float value = static_cast<float>(random() % 1000) / 10 - 50;
    tree[i] = {value};
    if (depths[i] == deepest || (i > 0 && random() % 2 == 0)) continue;
    tree[i] = {value, static_cast<uint16_t>(random() % kWidth), static_cast<uint16_t>(tree.size())};
    tree.resize(tree.size() + 2);
    depths.resize(tree.size(), depths[i] + 1);
  }
  return tree;
}

TEST(CompleteForest, SaysWhatTheForestSays) {
  std::mt19937 random(11);
  for (int deepest = 0; deepest <= CompleteForest::kDeepest; ++deepest) {
    Forest forest(0.75F);
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(forest.add_tree(random_tree(random, deepest)).ok());
    const auto complete = CompleteForest::of(forest);
    ASSERT_TRUE(complete.has_value());
    for (const size_t count : {0U, 1U, 7U, 8U, 9U, 41U}) {
      std::vector<float> rows(count * kWidth);
      for (float& value : rows) {
        const auto kind = random() % 20;
        value = kind == 0   ? std::nanf("")
                : kind == 1 ? INFINITY
                : kind == 2 ? -INFINITY
                            : static_cast<float>(random() % 1000) / 10 - 50;
      }
      const std::vector<float> said = complete->predict_all(RowBlocks(rows, kWidth));
      ASSERT_EQ(said.size(), count);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(said[i], forest.predict(std::span(rows).subspan(i * kWidth, kWidth))) << deepest;
      }
    }
  }
}

TEST(CompleteForest, LeavesDeepTreesAlone) {
  Forest forest;
  // A chain: pairs of a leaf and the next split.
  std::vector<Node> tree = {{1.0F, 0, 1}};
  for (uint16_t i = 0; i < CompleteForest::kDeepest; ++i) {
    tree.push_back({2.0F});
    tree.push_back({1.0F, 0, static_cast<uint16_t>(tree.size() + 1)});
  }
  tree.push_back({3.0F});
  tree.push_back({4.0F});
  ASSERT_TRUE(forest.add_tree(tree).ok());
  EXPECT_EQ(forest.depth(0), CompleteForest::kDeepest + 1);
  EXPECT_FALSE(CompleteForest::of(forest).has_value());
}

}  // namespace
}  // namespace forerun
