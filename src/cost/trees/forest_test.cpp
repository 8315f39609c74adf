#include "cost/trees/forest.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace forerun {
namespace {

using Node = Forest::Node;

// x0 < 2 ? 10 : (x1 < 0 ? 20 : 30)
const std::vector<Node> kTree = {{2, 0, 1}, {10}, {0, 1, 3}, {20}, {30}};

TEST(Forest, AddsTheLeavesThatARowFallsInto) {
  Forest forest(0.5F);
  ASSERT_TRUE(forest.add_tree(kTree).ok());
  ASSERT_TRUE(forest.add_tree({{{1}}}).ok());
  EXPECT_FLOAT_EQ(forest.predict({{1, 5}}), 11.5F);
  EXPECT_FLOAT_EQ(forest.predict({{2, -1}}), 21.5F);  // a threshold itself goes right
  EXPECT_FLOAT_EQ(forest.predict({{3, 0}}), 31.5F);
  EXPECT_FLOAT_EQ(forest.predict({{std::nanf(""), -1}}), 21.5F);
  EXPECT_EQ(forest.columns(), 2);
}

// The same, one tree and one step after the other.
float reference_predict(float base, const std::vector<std::vector<Node>>& trees, const std::vector<float>& row) {
  double sum = base;
  for (const std::vector<Node>& tree : trees) {
    size_t at = 0;
    while (tree[at].column != Forest::kLeaf) at = tree[at].left + (row[tree[at].column] < tree[at].value ? 0 : 1);
    sum += tree[at].value;
  }
  return static_cast<float>(sum);
}

TEST(Forest, RowsSideBySideGiveWhatTheyGiveOneByOne) {
  std::mt19937 random(3);
  const auto number = [&] { return static_cast<float>(random() % 1000) / 10 - 50; };
  for (const size_t count : {1U, 7U, 8U, 21U}) {
    Forest forest(2);
    std::vector<std::vector<Node>> trees;
    for (size_t i = 0; i < count; ++i) {
      std::vector<Node> tree(1);
      const size_t splits = random() % 40;
      for (size_t split = 0, at = 0; split < splits && at < tree.size(); at += 1 + random() % 2) {
        if (at >= tree.size()) break;
        tree[at] = {number(), static_cast<uint16_t>(random() % 5), static_cast<uint16_t>(tree.size())};
        tree.insert(tree.end(), {Node{number()}, Node{number()}});
        ++split;
      }
      for (Node& node : tree) {
        if (node.column == Forest::kLeaf) node.value = number();
      }
      ASSERT_TRUE(forest.add_tree(tree).ok());
      trees.push_back(tree);
    }
    std::vector<float> rows(5 * 3 * count);
    for (float& value : rows) value = random() % 9 == 0 ? std::nanf("") : number();
    const std::vector<float> together = forest.predict_all(rows, 5);
    ASSERT_EQ(together.size(), 3 * count);
    for (size_t i = 0; i < together.size(); ++i) {
      const std::vector<float> row(rows.begin() + static_cast<int64_t>(5 * i),
                                   rows.begin() + static_cast<int64_t>(5 * i + 5));
      EXPECT_EQ(forest.predict(row), reference_predict(2, trees, row)) << count;
      EXPECT_EQ(together[i], reference_predict(2, trees, row)) << count;
    }
  }
}

TEST(Forest, ReadsWhatItWrote) {
  Forest forest(-1.25F);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(forest.add_tree(kTree).ok());
  std::string bytes;
  forest.write(bytes);
  bytes += "rest";
  std::string_view view = bytes;
  const Result<Forest> read = Forest::read(view);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(view, "rest");
  EXPECT_EQ(read->node_count(), forest.node_count());
  for (const float x : {-1.0F, 2.0F, 7.0F}) EXPECT_EQ(read->predict({{x, -x}}), forest.predict({{x, -x}}));
}

TEST(Forest, RefusesTreesThatNeverEnd) {
  Forest forest;
  EXPECT_FALSE(forest.add_tree({}).ok());
  EXPECT_FALSE(forest.add_tree({{{1, 0, 0}, {1}, {2}}}).ok());  // its own child
  EXPECT_FALSE(forest.add_tree({{{1, 0, 2}, {1}, {2}}}).ok());  // the right child is missing
  EXPECT_EQ(forest.tree_count(), 0U);
}

TEST(Forest, SurvivesBrokenBytes) {
  Forest forest(1);
  ASSERT_TRUE(forest.add_tree(kTree).ok());
  std::string bytes;
  forest.write(bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    std::string_view cut(bytes.data(), length);
    EXPECT_FALSE(Forest::read(cut).ok()) << length;
  }
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    std::string_view view = damaged;
    const Result<Forest> read = Forest::read(view);
    if (read.ok() && read->columns() <= 8) static_cast<void>(read->predict(std::vector<float>(8, 1.0F)));
  }
}

// Trees numbered depth first, as a reader may meet them: written level by level they answer the same.
TEST(Forest, IsTheSameWrittenByLevel) {
  Forest forest(0.25F);
  const std::vector<Node> deep = {{0.5F, 2, 3},       {1, Forest::kLeaf}, {2, Forest::kLeaf}, {0.1F, 0, 5},
                                  {3, Forest::kLeaf}, {4, Forest::kLeaf}, {5, Forest::kLeaf}};
  ASSERT_TRUE(forest.add_tree(std::vector<Node>{{7, Forest::kLeaf}}).ok());
  ASSERT_TRUE(forest.add_tree(deep).ok());
  std::string bytes;
  forest.write_by_level(bytes);
  std::string_view rest = bytes;
  const Result<Forest> read = Forest::read_by_level(rest);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(read->columns(), forest.columns());
  for (const float a : {0.0F, 0.2F}) {
    for (const float c : {0.0F, 0.9F}) {
      const std::array<float, 3> row = {a, 0, c};
      EXPECT_EQ(read->predict(row), forest.predict(row));
      EXPECT_EQ(read->predict_all(row, 3), forest.predict_all(row, 3));
    }
  }
  std::string again;
  read->write_by_level(again);
  EXPECT_EQ(again, bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    std::string_view cut = std::string_view(bytes).substr(0, length);
    EXPECT_FALSE(Forest::read_by_level(cut).ok()) << length;
  }
  std::string childless = bytes;
  childless[17] = '\xFF';  // the second tree's root as a leaf: its children are nobody's
  rest = childless;
  EXPECT_FALSE(Forest::read_by_level(rest).ok());
}

}  // namespace
}  // namespace forerun
