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

}  // namespace
}  // namespace forerun
