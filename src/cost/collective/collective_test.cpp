#include "cost/collective/collective.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

Link link(double bandwidth, int64_t latency_ns) {
  Link made;
  made.name = "test";
  made.bandwidth = bandwidth;
  made.latency = Nanoseconds(latency_ns);
  return made;
}

TEST(CollectiveTest, RingIsPaleosClosedForm) {
  // 2 (n-1)/n D/B: 4 ranks, 1 GB over 10 GB/s: 2 * 3/4 * 0.1 s.
  EXPECT_EQ(ring_all_reduce(Bytes(1'000'000'000), 4, link(10e9, 0)), Nanoseconds(150'000'000));
  // Six latencies of 5 us come on top.
  EXPECT_EQ(ring_all_reduce(Bytes(1'000'000'000), 4, link(10e9, 5000)), Nanoseconds(150'030'000));
}

TEST(CollectiveTest, RingIsReduceScatterThenAllGather) {
  for (const int64_t ranks : {2, 3, 8, 17}) {
    const Link l = link(7e9, 3000);
    const int64_t parts =
        reduce_scatter(Bytes(123'456'789), ranks, l).value + all_gather(Bytes(123'456'789), ranks, l).value;
    EXPECT_NEAR(static_cast<double>(ring_all_reduce(Bytes(123'456'789), ranks, l).value), static_cast<double>(parts),
                1);
  }
}

TEST(CollectiveTest, Trees) {
  // 8 ranks: depth 3; 5 ranks: depth 3 as well.
  EXPECT_EQ(tree_all_reduce(Bytes(1000), 8, link(1e9, 100)), Nanoseconds(6 * (100 + 1000)));
  EXPECT_EQ(tree_all_reduce(Bytes(1000), 5, link(1e9, 100)), Nanoseconds(6 * (100 + 1000)));
  EXPECT_EQ(double_tree_all_reduce(Bytes(1000), 8, link(1e9, 100)), Nanoseconds(6 * 100 + 2 * 1000));
  EXPECT_EQ(broadcast(Bytes(1000), 4, link(1e9, 100)), Nanoseconds(2 * (100 + 1000)));
}

TEST(CollectiveTest, TreesWinOnSmallMessagesAndRingsOnLargeOnes) {
  const Link l = link(10e9, 5000);
  EXPECT_LT(tree_all_reduce(Bytes(1024), 64, l), ring_all_reduce(Bytes(1024), 64, l));
  EXPECT_GT(tree_all_reduce(Bytes(1 << 30), 64, l), ring_all_reduce(Bytes(1 << 30), 64, l));
}

TEST(CollectiveTest, OneRankCostsNothing) {
  const Link l = link(1e9, 1000);
  for (const int64_t ranks : {0, 1}) {
    EXPECT_EQ(ring_all_reduce(Bytes(1000), ranks, l), Nanoseconds(0));
    EXPECT_EQ(tree_all_reduce(Bytes(1000), ranks, l), Nanoseconds(0));
    EXPECT_EQ(broadcast(Bytes(1000), ranks, l), Nanoseconds(0));
  }
  EXPECT_EQ(all_reduce(AllReduce::ring, Bytes(0), 2, l), Nanoseconds(2000));  // latency stays
}

TEST(CollectiveTest, HierarchicalIsItsThreeParts) {
  const Topology topology{2, 4, link(100e9, 0), link(10e9, 0)};
  // Within: 3/4 of 10 ms, twice; between two nodes: 2 * 1/2 of 100 ms.
  EXPECT_EQ(hierarchical_all_reduce(Bytes(1'000'000'000), topology), Nanoseconds(7'500'000 * 2 + 100'000'000));
  const Topology one_node{1, 4, link(100e9, 0), link(10e9, 0)};
  EXPECT_EQ(hierarchical_all_reduce(Bytes(1'000'000'000), one_node),
            ring_all_reduce(Bytes(1'000'000'000), 4, link(100e9, 0)));
}

TEST(CollectiveTest, ParameterServerIsBoundByTheBusiestLink) {
  const Link l = link(1e9, 0);
  EXPECT_EQ(parameter_push(Bytes(1000), {8, 1, l}), Nanoseconds(8000));  // one server takes all
  EXPECT_EQ(parameter_push(Bytes(1000), {8, 4, l}), Nanoseconds(2000));
  EXPECT_EQ(parameter_push(Bytes(1000), {2, 4, l}), Nanoseconds(1000));  // the worker's own link
  EXPECT_EQ(parameter_exchange(Bytes(1000), {8, 4, l}), Nanoseconds(4000));
}

TEST(CollectiveTest, RingOverNodesWaitsForTheNetworkOncePerNodeAndLap) {
  // 8 ranks in 2 nodes: 14 steps, 4 of them between nodes; 2 * 7/8 of 1 GB over the slower link.
  const Topology topology{2, 4, link(10e9, 5'000), link(1e9, 30'000)};
  EXPECT_EQ(all_reduce(AllReduce::ring, Bytes(1'000'000'000), topology),
            Nanoseconds(1'750'000'000 + 4 * 30'000 + 10 * 5'000));
  EXPECT_EQ(reduce_scatter(Bytes(1'000'000'000), topology), Nanoseconds(875'000'000 + 2 * 30'000 + 5 * 5'000));
  // One node is the ring of the node; one rank a node that of the network.
  const Topology node{1, 4, link(10e9, 5'000), link(1e9, 30'000)};
  EXPECT_EQ(all_reduce(AllReduce::ring, Bytes(1000), node), ring_all_reduce(Bytes(1000), 4, link(10e9, 5'000)));
  const Topology spread{4, 1, link(10e9, 5'000), link(1e9, 30'000)};
  EXPECT_EQ(all_reduce(AllReduce::double_tree, Bytes(1000), spread),
            double_tree_all_reduce(Bytes(1000), 4, link(1e9, 30'000)));
  EXPECT_EQ(all_reduce(AllReduce::tree, Bytes(1000), spread), tree_all_reduce(Bytes(1000), 4, link(1e9, 30'000)));
}

TEST(CollectiveTest, FastestTakesTreesForSmallMessages) {
  const Topology topology{16, 8, link(100e9, 3'000), link(10e9, 20'000)};
  for (const int64_t bytes : {1'000L, 1'000'000L, 1'000'000'000L}) {
    const Nanoseconds ring = all_reduce(AllReduce::ring, Bytes(bytes), topology);
    const Nanoseconds tree = all_reduce(AllReduce::double_tree, Bytes(bytes), topology);
    EXPECT_EQ(all_reduce(AllReduce::fastest, Bytes(bytes), topology), std::min(ring, tree));
  }
  EXPECT_LT(all_reduce(AllReduce::fastest, Bytes(1'000), topology),
            all_reduce(AllReduce::ring, Bytes(1'000), topology));
}

TEST(CollectiveTest, BlueConnectIsTheHierarchicalFormInStages) {
  const Topology topology{4, 8, link(100e9, 3'000), link(10e9, 20'000)};
  const auto stages = all_reduce_stages(AllReduce::blueconnect, Bytes(64'000'000), topology);
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_EQ(stages[0].level, Level::within);
  EXPECT_EQ(stages[1].level, Level::between);
  Nanoseconds sum{};
  for (const CollectiveStage& stage : stages) sum += stage.time;
  EXPECT_EQ(sum, hierarchical_all_reduce(Bytes(64'000'000), topology));
  EXPECT_EQ(all_reduce_stages(AllReduce::ring, Bytes(1), topology).size(), 1U);
  EXPECT_TRUE(all_reduce_stages(AllReduce::ring, Bytes(1), Topology{1, 1, link(1, 1), link(1, 1)}).empty());
}

TEST(CollectiveTest, AllToAllCrowdsTheNodesLink) {
  // 8 ranks in 2 nodes: each of 4 ranks sends half of its bytes to the other node.
  const Topology topology{2, 4, link(100e9, 0), link(1e9, 0)};
  EXPECT_EQ(all_to_all(Bytes(1'000'000), topology), Nanoseconds(2'000'000));
  const Topology node{1, 4, link(1e9, 0), link(1e9, 0)};
  EXPECT_EQ(all_to_all(Bytes(1'000'000), node), all_to_all(Bytes(1'000'000), 4, link(1e9, 0)));
}

TEST(CollectiveTest, ServersOnTheWorkersMachinesKeepTheirOwnShard) {
  const Link l = link(1e9, 0);
  ParameterServers setup{4, 4, l};
  setup.colocated = true;
  EXPECT_EQ(parameter_push(Bytes(1000), setup), Nanoseconds(750));
}

TEST(CollectiveTest, NamesAreFound) {
  for (const std::string& name : all_reduce_names()) {
    const auto found = all_reduce_named(name);
    ASSERT_TRUE(found.has_value()) << name;
    EXPECT_EQ(name_of(*found), name);
  }
  EXPECT_FALSE(all_reduce_named("star").has_value());
}

TEST(CollectiveTest, NegotiationGrowsWithTheLogarithm) {
  const auto nodes = [](int64_t count) { return Topology{count, 4, link(1e9, 5), link(1e9, 30)}; };
  EXPECT_EQ(negotiation(nodes(1)), Nanoseconds(2 * 2 * 5));
  EXPECT_EQ(negotiation(nodes(2)), Nanoseconds(2 * 3 * 30));
  EXPECT_EQ(negotiation(nodes(8)), Nanoseconds(2 * 5 * 30));
}

}  // namespace
}  // namespace forerun
