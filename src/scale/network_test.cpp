#include "scale/network.h"

#include <gtest/gtest.h>

#include "scale/test_cluster.h"

namespace forerun::scale {
namespace {

TEST(Network, GroupsSpreadOverNodes) {
  const GpuCluster cluster = test_cluster(64);
  EXPECT_EQ(ranks_in_node(cluster, {8, 1}), 8);
  EXPECT_EQ(ranks_in_node(cluster, {64, 1}), 8);
  EXPECT_EQ(ranks_in_node(cluster, {8, 8}), 1);
  EXPECT_EQ(ranks_in_node(cluster, {16, 4}), 2);
}

// Groups of three neighbours on nodes of eight: some have one GPU alone in a node.
TEST(Network, GroupsAcrossTheEndsOfNodesAreAsSlowAsTheWorst) {
  const GpuCluster cluster = test_cluster(24);
  EXPECT_EQ(ranks_in_node(cluster, {6, 1}), 2);
  EXPECT_EQ(ranks_in_node(cluster, {3, 1}), 1);
  EXPECT_EQ(ranks_in_node(cluster, {4, 1}), 4);
  EXPECT_EQ(ranks_in_node(cluster, {12, 1}), 4);
  EXPECT_EQ(ranks_in_node(cluster, {8, 3}), 1);
  EXPECT_EQ(ranks_in_node(test_cluster(6), {6, 1}), 6);  // one node
  const Network network(cluster, Efficiency());
  const Bytes bytes(int64_t{1} << 28);
  EXPECT_GT(network.all_reduce(bytes, {6, 1}), network.all_reduce(bytes, {8, 1}) * 2);
}

TEST(Network, GroupsOfANodeShareItsConnection) {
  const Network network(test_cluster(64), Efficiency());
  const Bytes bytes(int64_t{1} << 30);
  // Eight groups of one GPU a node each have an eighth of its connection; one group of all eight has it whole.
  const double apart = static_cast<double>(network.all_reduce(bytes, {8, 8}).value);
  const double together = static_cast<double>(network.all_reduce(bytes, {64, 1}).value);
  EXPECT_NEAR(apart / together, 8.0 * (7.0 / 8) / (63.0 / 64), 0.3);
}

TEST(Network, NodesAreFasterInside) {
  const Network network(test_cluster(16), Efficiency());
  const Bytes bytes(int64_t{1} << 28);
  EXPECT_LT(network.all_reduce(bytes, {8, 1}), network.all_reduce(bytes, {16, 1}));
  EXPECT_LT(network.send(bytes, 1, 1), network.send(bytes, 8, 1));
  EXPECT_LT(network.send(bytes, 8, 8), network.send(bytes, 8, 1));
  EXPECT_EQ(network.all_reduce(bytes, {1, 1}), Nanoseconds());
}

TEST(Network, AGroupFindsTheLinksOfItsRanks) {
  Efficiency efficiency;
  efficiency.links.between.share = 0.5;
  const Network network(test_cluster(64), efficiency);
  const Topology all = network.topology_of({64, 1});
  EXPECT_EQ(all.nodes, 8);
  EXPECT_EQ(all.ranks_per_node, 8);
  EXPECT_EQ(all.between.bandwidth, 50e9);
  const Topology apart = network.topology_of({16, 4});  // two of each node, which four groups share
  EXPECT_EQ(apart.nodes, 8);
  EXPECT_EQ(apart.ranks_per_node, 2);
  EXPECT_EQ(apart.between.bandwidth, 12.5e9);
}

}  // namespace
}  // namespace forerun::scale
