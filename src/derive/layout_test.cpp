#include "derive/layout.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

Layout layout(const Shape& shape, const Shape& strides) {
  GraphBuilder builder;
  const TensorId tensor =
      builder.add_tensor(builder.add_storage(Bytes(int64_t{1} << 30)), DType::float32, shape, strides);
  const Graph graph = builder.finish();
  return LayoutTracker(graph, false).of(tensor);
}

TEST(Layout, ReadsStrides) {
  EXPECT_FALSE(layout({4, 8}, {8, 1}).permuted);
  EXPECT_TRUE(layout({8, 4}, {1, 8}).permuted);
  EXPECT_TRUE(layout({4, 8}, {0, 1}).expanded);
  EXPECT_TRUE(layout({4, 8}, {16, 1}).sliced);
  EXPECT_FALSE(layout({4, 8}, {8, 1}).sliced);
  EXPECT_FALSE(layout({1, 8}, {1, 1}).permuted);  // the stride of a single element says nothing
}

TEST(Layout, TellsChannelsLastFromOtherPermutations) {
  const Layout image = layout({2, 3, 4, 5}, {60, 1, 15, 3});
  EXPECT_TRUE(image.channels_last);
  EXPECT_FALSE(image.permuted);
  const Layout heads = layout({2, 3, 4, 5}, {60, 5, 15, 1});
  EXPECT_FALSE(heads.channels_last);
  EXPECT_TRUE(heads.permuted);
}

// x -> t -> mm, as run/1 has it: no strides anywhere.
TEST(Layout, FollowsViewsWhereThereAreNoStrides) {
  GraphBuilder builder;
  const StorageId weights = builder.add_storage(Bytes(4 * 8 * 4));
  const TensorId weight = builder.add_tensor(weights, DType::float32, Shape{8, 4});
  const TensorId turned = builder.add_tensor(weights, DType::float32, Shape{4, 8});
  const TensorId flat = builder.add_tensor(weights, DType::float32, Shape{1, 4, 8});
  const TensorId result = builder.add_tensor(builder.add_storage(Bytes(4 * 8 * 4)), DType::float32, Shape{4, 8, 1});
  builder.add_op({.name = "aten.t.default", .inputs = {{weight}}, .outputs = {{turned}}});
  builder.add_op({.name = "aten.unsqueeze.default", .inputs = {{turned}}, .outputs = {{flat}}});
  builder.add_op({.name = "aten.bmm.default", .inputs = {{flat}}, .outputs = {{result}}});
  const Graph graph = builder.finish();
  LayoutTracker layouts(graph, false);
  for (const Op& op : graph.ops()) layouts.pass(op);
  EXPECT_FALSE(layouts.of(weight).permuted);
  EXPECT_TRUE(layouts.of(turned).permuted);
  EXPECT_TRUE(layouts.of(flat).permuted);
  EXPECT_FALSE(layouts.of(result).permuted);
}

TEST(Layout, TakesImagesOfAChannelsLastRunToBeSo) {
  GraphBuilder builder;
  const TensorId image = builder.add_tensor(builder.add_storage(Bytes(480)), DType::float32, Shape{2, 3, 4, 5});
  const TensorId row = builder.add_tensor(builder.add_storage(Bytes(24)), DType::float32, Shape{2, 3, 1, 1});
  const Graph graph = builder.finish();
  EXPECT_TRUE(LayoutTracker(graph, true).of(image).channels_last);
  EXPECT_FALSE(LayoutTracker(graph, true).of(row).channels_last);
  EXPECT_FALSE(LayoutTracker(graph, false).of(image).channels_last);
}

}  // namespace
}  // namespace forerun
