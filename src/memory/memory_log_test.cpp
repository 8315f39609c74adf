#include "memory/memory_log.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

// A weight of 20 MiB; forward makes 30 MiB in "block.act", backward a gradient of 20 MiB, the update nothing.
Graph one_layer() {
  GraphBuilder builder;
  const auto tensor = [&](int64_t mib, Root root = Root::none, const char* name = "") {
    const StorageId id = builder.add_storage(Bytes(mib * kMebibyte));
    if (root != Root::none) builder.mark_root(id, root, name);
    return builder.add_tensor(id, DType::uint8, std::vector<int64_t>{mib * kMebibyte});
  };
  const std::vector<TensorId> weight = {tensor(20, Root::parameter, "block.fc.weight")};
  const std::vector<TensorId> made = {tensor(30)};
  const std::vector<TensorId> gradient = {tensor(20)};
  builder.add_op({.name = "aten.neg.default", .module = "block.act", .inputs = weight, .outputs = made, .sequence = 3});
  builder.add_op({.name = "aten.mul.Tensor",
                  .phase = Phase::backward,
                  .module = "",
                  .inputs = made,
                  .outputs = gradient,
                  .sequence = 3});
  builder.add_op({.name = "aten._fused_sgd_.default", .phase = Phase::update, .inputs = gradient});
  builder.mark_freed(builder.graph().tensor(made[0]).storage, OpId(2));
  return builder.finish();
}

TEST(MemoryLog, FindsThePeakAndWhatLivesThen) {
  const Graph graph = one_layer();
  const MemoryLog log = log_iterations(graph, {});
  ASSERT_LT(log.peak, log.events.size());
  EXPECT_EQ(log.events[log.peak].op, OpId(1));
  EXPECT_EQ(log.replay.peak.peak_op, OpId(1));
  const std::vector<LiveBlock> live = live_after(log, log.peak);
  ASSERT_EQ(live.size(), 3U);
  EXPECT_EQ(live[0].bytes, 30 * kMebibyte);
  EXPECT_EQ(live[0].use, Use::activation);
  EXPECT_EQ(live[1].use, Use::parameter);  // of equals the one made earlier
  EXPECT_EQ(live[2].use, Use::gradient);
  int64_t sum = 0;
  for (const LiveBlock& block : live) sum += block.bytes;
  EXPECT_EQ(Bytes(sum), log.replay.peak.peak_allocated);
}

TEST(MemoryLog, GroupsByModuleAndUse) {
  const Graph graph = one_layer();
  const MemoryLog log = log_iterations(graph, {});
  const std::vector<LiveShare> shares = live_shares(graph, log, log.peak);
  ASSERT_EQ(shares.size(), 3U);
  EXPECT_EQ(shares[0].module, "block.act");
  EXPECT_EQ(shares[0].what, "aten.neg.default");
  EXPECT_EQ(shares[1].module, "block.act");  // the gradient, made by the backward op of that forward op
  EXPECT_EQ(shares[1].use, Use::gradient);
  EXPECT_EQ(shares[2].module, "block.fc");
  EXPECT_EQ(shares[2].what, "block.fc.weight");
}

TEST(MemoryLog, EndsWithWhatTheRunLeaves) {
  const Graph graph = one_layer();
  const MemoryLog log = log_iterations(graph, {});
  int64_t left = 0;
  for (const LiveBlock& block : live_after(log, log.events.size())) left += block.bytes;
  EXPECT_EQ(left, log.replay.figures.allocated.current);
}

}  // namespace
}  // namespace forerun
