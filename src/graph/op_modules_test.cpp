#include "graph/op_modules.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

TEST(OpModules, TakeBackwardOpsToTheForwardOpTheyDifferentiate) {
  GraphBuilder builder;
  builder.add_op({.name = "aten.relu.default", .module = "layer1.0.relu", .sequence = 7});
  builder.add_op({.name = "aten.neg.default", .module = "head"});
  builder.add_op({.name = "aten.threshold_backward.default", .phase = Phase::backward, .sequence = 7});
  builder.add_op({.name = "aten.neg.default", .phase = Phase::backward, .module = "kept", .sequence = 99});
  const Graph graph = builder.finish();
  const std::vector<NameId> modules = op_modules(graph);
  ASSERT_EQ(modules.size(), 4U);
  EXPECT_EQ(graph.names()[modules[0]], "layer1.0.relu");
  EXPECT_EQ(graph.names()[modules[1]], "head");
  EXPECT_EQ(graph.names()[modules[2]], "layer1.0.relu");
  EXPECT_EQ(graph.names()[modules[3]], "kept");
}

// A checkpointed block runs again within the backward pass, and what differentiates it follows.
TEST(OpModules, FollowBlocksThatRunAgain) {
  GraphBuilder builder;
  builder.add_op({.name = "aten.relu.default", .module = "layers.0.act"});
  builder.add_op({.name = "aten.relu.default", .phase = Phase::backward, .module = "layers.0.act", .sequence = 12});
  builder.add_op({.name = "aten.threshold_backward.default",
                  .phase = Phase::backward,
                  .sequence = 12,
                  .autograd_node = "ReluBackward0"});
  builder.add_op({.name = "aten.mm.default", .phase = Phase::backward, .sequence = 13, .autograd_node = "MmBackward0"});
  const Graph graph = builder.finish();
  EXPECT_FALSE(runs_again(graph, graph.ops()[0]));
  EXPECT_TRUE(runs_again(graph, graph.ops()[1]));
  EXPECT_FALSE(runs_again(graph, graph.ops()[2]));
  for (const NameId module : op_modules(graph)) EXPECT_EQ(graph.names()[module], "layers.0.act");
}

TEST(OpModules, ABlockHasItsOwnOps) {
  GraphBuilder builder;
  builder.add_op({.name = "aten.relu.default", .module = "layers.0.act"});
  builder.add_op({.name = "aten.add.Tensor", .module = "layers.0"});
  builder.add_op({.name = "aten.relu.default", .module = "features.3"});
  const ModuleBlocks blocks(builder.graph());
  EXPECT_EQ(blocks.of("layers.0.act"), "layers.0");
  EXPECT_EQ(blocks.of("layers.0"), "layers.0");
  EXPECT_EQ(blocks.of("features.3"), "") << "a layer that is one op";
  EXPECT_EQ(blocks.of("head"), "");
}

TEST(OpModules, CutBlocksAtTheFirstNumber) {
  EXPECT_EQ(block_of("transformer.h.11.mlp.c_fc.weight"), "transformer.h.11");
  EXPECT_EQ(block_of("layer1.0.conv2"), "layer1.0");
  EXPECT_EQ(block_of("layer1.0.1.conv"), "layer1.0");
  EXPECT_EQ(block_of("features.0"), "");
  EXPECT_EQ(block_of("conv1"), "");
  EXPECT_EQ(block_of(""), "");
}

}  // namespace
}  // namespace forerun
