// Fluid communities on graphs whose parts are known, and the groups of ops made from them.
#include "lab/dataset/driple/fluid_communities.h"

#include <gtest/gtest.h>

#include <set>

#include "lab/dataset/driple/op_groups.h"

namespace forerun::learn {
namespace {

using FluidEdges = std::vector<std::pair<uint32_t, uint32_t>>;

void add_clique(FluidEdges& edges, uint32_t first, uint32_t size) {
  for (uint32_t a = first; a < first + size; ++a) {
    for (uint32_t b = a + 1; b < first + size; ++b) edges.emplace_back(a, b);
  }
}

size_t distinct(const std::vector<uint32_t>& communities) {
  return std::set<uint32_t>(communities.begin(), communities.end()).size();
}

TEST(FluidCommunities, FindTwoCliquesWithOneBridge) {
  FluidEdges edges;
  add_clique(edges, 0, 8);
  add_clique(edges, 8, 8);
  edges.emplace_back(7, 8);
  const Neighbours graph = neighbours_of(16, edges);
  int found = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<uint32_t> communities = fluid_communities(graph, 2, seed);
    bool whole = communities[0] != communities[15];
    for (uint32_t i = 0; i < 8; ++i) {
      whole = whole && communities[i] == communities[0] && communities[8 + i] == communities[15];
    }
    found += whole ? 1 : 0;
  }
  EXPECT_GE(found, 15);  // two seeds in one clique may divide it
}

TEST(FluidCommunities, OfAPathAreStretchesOfIt) {
  FluidEdges edges;
  for (uint32_t i = 0; i + 1 < 60; ++i) edges.emplace_back(i, i + 1);
  const std::vector<uint32_t> communities = fluid_communities(neighbours_of(60, edges), 6, 42);
  EXPECT_EQ(distinct(communities), 6U);
  int borders = 0;
  for (size_t i = 1; i < communities.size(); ++i) borders += communities[i] != communities[i - 1] ? 1 : 0;
  EXPECT_EQ(borders, 5);
}

TEST(FluidCommunities, AreAsManyAsAskedForAndTheSameForASeed) {
  FluidEdges edges;
  for (uint32_t i = 1; i < 200; ++i) edges.emplace_back(i, (i * 7919) % i);
  const Neighbours graph = neighbours_of(200, edges);
  for (const size_t k : {size_t{1}, size_t{17}, size_t{200}}) {
    const std::vector<uint32_t> communities = fluid_communities(graph, k, 3);
    EXPECT_EQ(distinct(communities), k);
    EXPECT_EQ(communities, fluid_communities(graph, k, 3));
  }
}

TEST(LargestComponent, IsThatWithTheMostNodes) {
  EXPECT_EQ(largest_component(neighbours_of(7, {{0, 1}, {2, 4}, {4, 6}, {3, 3}})), (std::vector<uint32_t>{2, 4, 6}));
}

// A chain of `length` ops of two names, each of 100 bytes, and one op apart from it.
Example chain_of_ops(DataSet& data, uint32_t length) {
  Example example;
  for (uint32_t i = 0; i <= length; ++i) {
    OpRow row;
    row.name = data.intern_name(i % 2 == 0 ? "a" : "b");
    row.set(Amount::bytes_written, 100);
    example.ops.push_back(data.intern(row));
    if (i > 0 && i < length) example.edges.push_back({i - 1, i, 100});
  }
  return example;
}

TEST(OpGroups, AddUpWhatTheirOpsAre) {
  DataSet data;
  data.add(chain_of_ops(data, 40));
  const OperatorFrequencies frequencies = operator_frequencies(data, {0});
  EXPECT_NEAR(frequencies.at("a"), 21.0 / 41, 1e-12);
  const GroupedGraph grouped =
      group_ops(data, data.examples()[0], frequencies, {.grouping = Grouping::uniform, .uniform = 8});
  ASSERT_EQ(grouped.features.size(), 8U);
  std::array<double, 3> sums = {};
  for (const auto& features : grouped.features) {
    for (size_t i = 0; i < 3; ++i) sums[i] += features[i];
  }
  EXPECT_NEAR(sums[0], 20 * 21.0 / 41 + 20 * 20.0 / 41, 1e-9);
  EXPECT_DOUBLE_EQ(sums[1], 4000);
  EXPECT_DOUBLE_EQ(sums[2], 40);
  EXPECT_EQ(grouped.edges.size(), 14U);  // the chain's seven links, in both directions
}

TEST(OpGroups, HaveNodesForWhatNoOpMakesWhereAsked) {
  DataSet data;
  Example example = chain_of_ops(data, 3);
  OpRow reads = data.rows()[example.ops[0]];
  reads.set(Amount::weight_bytes, 40);
  reads.set(Amount::input_bytes, 600);
  OpRow update = reads;
  update.phase = Phase::update;
  example.ops[0] = data.intern(reads);
  example.ops[2] = data.intern(update);
  data.add(example);
  const GroupingOptions options{.grouping = Grouping::none, .nodes = GraphNodes::all};
  const OperatorFrequencies frequencies = operator_frequencies(data, {0}, GraphNodes::all);
  // A chain of three and one op apart; two constants, an input, and hyper-parameters of inputs and of the optimizer.
  EXPECT_NEAR(frequencies.at("forerun.constant"), 2.0 / 9, 1e-12);
  EXPECT_NEAR(frequencies.at("forerun.input"), 1.0 / 9, 1e-12);
  EXPECT_NEAR(frequencies.at("forerun.hyper_parameters"), 2.0 / 9, 1e-12);
  const GroupedGraph grouped = group_ops(data, data.examples()[0], frequencies, options);
  EXPECT_EQ(grouped.features.size(), 8U);  // all but the op apart
  double bytes = 0;
  for (const auto& features : grouped.features) bytes += features[1];
  EXPECT_DOUBLE_EQ(bytes, 3 * 100 + 2 * 40 + 600);
}

TEST(OpGroups, AreAsManyAsTheGroupingSays) {
  EXPECT_EQ(group_count(Grouping::none, 1234, 100), 1234U);
  EXPECT_EQ(group_count(Grouping::uniform, 1234, 100), 100U);
  EXPECT_EQ(group_count(Grouping::uniform, 30, 100), 30U);
  EXPECT_EQ(group_count(Grouping::proportional, 1000, 100), 30U);
  EXPECT_EQ(group_count(Grouping::proportional, 1, 100), 1U);
}

}  // namespace
}  // namespace forerun::learn
