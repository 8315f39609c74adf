#include "scale/network.h"

#include <gtest/gtest.h>

#include "scale/network_name.h"
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

TEST(Network, ParameterServersSumWithinANodeFirst) {
  GpuCluster cluster = test_cluster(32);
  cluster.node = 4;
  const Bytes bytes(int64_t{1} << 30);
  const Efficiency efficiency;
  const Network network(cluster, efficiency);
  const auto seconds = [](Nanoseconds time) { return static_cast<double>(time.value) * 1e-9; };
  // A node pushes its sum once: as much as a node of one GPU on the same connection.
  const ServerExchange eight = network.by_servers(bytes, 8);
  const double moved = static_cast<double>(bytes.value) / (cluster.between.bandwidth * efficiency.between.share);
  EXPECT_NEAR(seconds(eight.push), moved * 7 / 8, 0.01 * moved);
  EXPECT_EQ(eight.push, eight.pull);
  EXPECT_GT(eight.reduce, Nanoseconds());
  EXPECT_LT(eight.within(), eight.between());
  GpuCluster single = cluster;
  single.node = 1;
  single.gpus = 8;
  EXPECT_EQ(Network(single, efficiency).by_servers(bytes, 8).push, eight.push);
  EXPECT_EQ(Network(single, efficiency).by_servers(bytes, 8).reduce, Nanoseconds());
  // Fewer servers are crowded; more than nodes share the nodes' connections.
  EXPECT_NEAR(seconds(network.by_servers(bytes, 2).push), 4 * seconds(eight.push), 0.05 * seconds(eight.push));
  EXPECT_EQ(network.by_servers(bytes, 16).push, eight.push);
  // Within one node nothing is pushed.
  EXPECT_EQ(Network(test_cluster(8), efficiency).by_servers(bytes, 1).between(), Nanoseconds());
  EXPECT_EQ(Network(test_cluster(1), efficiency).by_servers(bytes, 1).total(), Nanoseconds());
}

TEST(NetworkName, LinksSeveralAndRates) {
  DeviceCatalogue catalogue;
  ASSERT_TRUE(catalogue.add(Link{"InfiniBand HDR", {"hdr"}, nanoseconds_from_us(5), 25e9}));
  EXPECT_EQ(network_by_name("hdr", catalogue)->bandwidth, 25e9);
  EXPECT_EQ(network_by_name("4xhdr", catalogue)->bandwidth, 100e9);
  EXPECT_EQ(network_by_name("800Gb/s", catalogue)->bandwidth, 100e9);
  EXPECT_EQ(network_by_name("12.5GB/s", catalogue)->bandwidth, 12.5e9);
  EXPECT_FALSE(network_by_name("nothing", catalogue));
  EXPECT_FALSE(network_by_name("-3Gb/s", catalogue));
  for (const char* rate : {"1e300Gb/s", "1e-300Gb/s", "1e7Gb/s", "infGB/s", "nanGb/s", "0Gb/s"}) {
    EXPECT_FALSE(network_by_name(rate, catalogue)) << rate;
  }
}

}  // namespace
}  // namespace forerun::scale
