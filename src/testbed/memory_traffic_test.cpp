// What passes the cache: everything far larger than it, next to nothing that was just touched and is small.
#include "testbed/memory_traffic.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "graph/graph_builder.h"

namespace forerun::scale {
namespace {

constexpr Bytes kCache{50'000'000};

// Elementwise ops on tensors of floats.
class ReluGraph {
 public:
  TensorId tensor(int64_t elements) {
    const std::vector<int64_t> shape = {elements};
    return builder_.add_tensor(builder_.add_storage(Bytes(4 * elements), true), DType::float32, shape);
  }
  TensorId relu(TensorId x, int64_t elements) {
    const std::vector<TensorId> inputs = {x};
    const std::vector<TensorId> outputs = {tensor(elements)};
    builder_.add_op({"aten.relu.default", Phase::forward, "", inputs, outputs, &attributes_, 0, ""});
    return outputs[0];
  }
  Traffic traffic() { return memory_traffic(builder_.finish(), kCache); }

 private:
  GraphBuilder builder_;
  Attributes attributes_;
};

// `count` ops, each on the result of the one before.
Traffic chain_traffic(int64_t elements, int count) {
  ReluGraph graph;
  TensorId x = graph.tensor(elements);
  for (int i = 0; i < count; ++i) x = graph.relu(x, elements);
  return graph.traffic();
}

TEST(MemoryTraffic, LargeTensorsPassTheCache) {
  const Traffic traffic = chain_traffic(1'000'000'000, 3);  // 4 GB each
  EXPECT_NEAR(traffic[4], 6 * 4e9, 0.03 * 6 * 4e9);
  EXPECT_NEAR(std::accumulate(traffic.begin(), traffic.end(), 0.0), 6 * 4e9, 1);
}

TEST(MemoryTraffic, SmallOnesStayInItOnceTheyAreThere) {
  const Traffic traffic = chain_traffic(25'000, 11);  // 100 kB each: all but the first read
  EXPECT_NEAR(traffic[4], 100e3, 0.1 * 100e3);
  EXPECT_NEAR(traffic[4] + traffic[4 + kTrafficKinds], 22 * 100e3, 1);
}

TEST(MemoryTraffic, WhatWasUsedLongAgoComesFromMemoryAgain) {
  ReluGraph graph;
  const TensorId small = graph.tensor(25'000);
  graph.relu(small, 25'000);
  const TensorId large = graph.tensor(100'000'000);  // 400 MB
  graph.relu(large, 100'000'000);
  const double once = 100e3 + 4e8 + 4e8 / (1 + 0.4 * 50e6 / 4e8);
  graph.relu(small, 25'000);
  EXPECT_NEAR(graph.traffic()[4], once + 100e3, 0.1 * 100e3);
}

}  // namespace
}  // namespace forerun::scale
