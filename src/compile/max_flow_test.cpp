// The flow against the smallest of all cuts, each tried, on random small networks.
#include "compile/max_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace forerun::compile {
namespace {

struct TestEdge {
  uint32_t from, to;
  int64_t capacity;
};

int64_t cut_value(const std::vector<TestEdge>& edges, uint32_t side) {
  int64_t sum = 0;
  for (const TestEdge& edge : edges) {
    if ((side >> edge.from & 1U) != 0 && (side >> edge.to & 1U) == 0) {
      sum = std::min(sum + edge.capacity, MaxFlow::kEndless);
    }
  }
  return sum;
}

TEST(MaxFlow, IsTheSmallestOfAllCuts) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const uint32_t points = 2 + random() % 7;
    std::vector<TestEdge> edges;
    MaxFlow flow(points);
    for (uint32_t i = 0; i < 3 * points; ++i) {
      TestEdge edge{static_cast<uint32_t>(random() % points), static_cast<uint32_t>(random() % points),
                    static_cast<int64_t>(random() % 9)};
      if (edge.from == edge.to) continue;
      if (random() % 8 == 0) edge.capacity = MaxFlow::kEndless;
      edges.push_back(edge);
      flow.add_edge(edge.from, edge.to, edge.capacity);
    }
    int64_t smallest = MaxFlow::kEndless;
    for (uint32_t side = 0; side < 1U << points; ++side) {
      if ((side & 1U) != 0 && (side >> (points - 1) & 1U) == 0) smallest = std::min(smallest, cut_value(edges, side));
    }
    const std::vector<bool> reached = flow.reached_at_most_flow(0, points - 1);
    ASSERT_EQ(flow.flow(), smallest);
    if (smallest == MaxFlow::kEndless) continue;
    uint32_t side = 0;
    for (uint32_t point = 0; point < points; ++point) side |= static_cast<uint32_t>(reached[point]) << point;
    EXPECT_EQ(cut_value(edges, side), smallest);  // the cut it names is one of them
  }
}

}  // namespace
}  // namespace forerun::compile
