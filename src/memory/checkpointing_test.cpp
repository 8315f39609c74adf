#include "memory/checkpointing.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "memory/iteration_replay.h"

namespace forerun {
namespace {

// `blocks` blocks of a list; each makes an inner activation of 40 MiB and hands one of 10 MiB to the next.
Graph chain(int blocks, const std::string& list) {
  GraphBuilder builder;
  const auto tensor = [&](int64_t mib, Root root = Root::none) {
    const StorageId id = builder.add_storage(Bytes(mib * kMebibyte));
    if (root != Root::none) builder.mark_root(id, root, "x");
    return builder.add_tensor(id, DType::uint8, std::vector<int64_t>{mib * kMebibyte});
  };
  const auto free = [&](TensorId id, size_t before) {
    builder.mark_freed(builder.graph().tensor(id).storage, OpId(before));
  };
  std::vector<TensorId> handed = {tensor(10, Root::input)};
  std::vector<TensorId> inner;
  for (int i = 0; i < blocks; ++i) {
    const std::string module = list + std::to_string(i) + ".fc";
    inner.push_back(tensor(40));
    const TensorId next = tensor(10);
    const std::vector<TensorId> from = {handed.back()};
    const std::vector<TensorId> middle = {inner.back()};
    const std::vector<TensorId> to = {next};
    builder.add_op({.name = "aten.neg.default", .module = module, .inputs = from, .outputs = middle});
    builder.add_op({.name = "aten.neg.default", .module = module, .inputs = middle, .outputs = to});
    handed.push_back(next);
  }
  for (int i = blocks - 1; i >= 0; --i) {
    const std::string module = list + std::to_string(i) + ".fc";
    const auto at = static_cast<size_t>(i);
    const std::vector<TensorId> from = {handed[at + 1], inner[at], handed[at]};
    const OpId op =
        builder.add_op({.name = "aten.neg.default", .phase = Phase::backward, .module = module, .inputs = from});
    free(handed[at + 1], op.value + size_t{1});
    free(inner[at], op.value + size_t{1});
  }
  return builder.finish();
}

TEST(Checkpointing, KeepsInputsOfBlocksAndOneBlockAtATime) {
  const Graph graph = chain(4, "h.");
  EXPECT_EQ(replay_iterations(graph).peak.peak_allocated, Bytes((10 + 4 * 50) * kMebibyte));
  const Checkpointed again = checkpointed(graph);
  ASSERT_TRUE(verify(again.graph).ok()) << verify(again.graph).error().message();
  EXPECT_EQ(again.blocks, 4);
  EXPECT_EQ(again.forward_ops, 1.0);
  // The input, what blocks hand on, and the inside of one block.
  EXPECT_EQ(replay_iterations(again.graph).peak.peak_allocated, Bytes((10 + 4 * 10 + 40) * kMebibyte));
}

TEST(Checkpointing, LeavesModelsWithoutBlocksAlone) {
  const Graph graph = chain(3, "stem");
  const Checkpointed again = checkpointed(graph);
  EXPECT_EQ(again.blocks, 0);
  EXPECT_EQ(replay_iterations(again.graph).peak.peak_allocated, replay_iterations(graph).peak.peak_allocated);
}

}  // namespace
}  // namespace forerun
