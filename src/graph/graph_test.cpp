// The graph as a container: what is put in comes out, what repeats is stored once, and a million ops fit.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

TEST(Graph, GivesBackWhatWasBuilt) {
  GraphBuilder builder;
  const StorageId weight = builder.add_storage(Bytes(6 * 4));
  const StorageId host = builder.add_storage(Bytes(8), false);
  builder.mark_root(weight, Root::parameter, "fc.weight");
  const TensorId w = builder.add_tensor(weight, DType::float32, Shape{2, 3}, Shape{3, 1});
  const TensorId h = builder.add_tensor(host, DType::int64, Shape{});
  const TensorId wt = builder.add_tensor(weight, DType::float32, Shape{3, 2}, Shape{1, 3});
  const Attributes attributes = {{"dim0", int64_t{0}}, {"scale", 0.5}};
  const TensorId inputs[] = {w, h};
  const OpId op = builder.add_op({.name = "aten.transpose.int",
                                  .phase = Phase::backward,
                                  .module = "fc",
                                  .inputs = inputs,
                                  .outputs = std::span(&wt, 1),
                                  .attributes = &attributes,
                                  .sequence = 7,
                                  .autograd_node = "TBackward0"});
  builder.add_parameter(w);
  const Graph graph = builder.finish();

  const Op& stored = graph.op(op);
  EXPECT_EQ(graph.name(stored), "aten.transpose.int");
  EXPECT_EQ(graph.module(stored), "fc");
  EXPECT_EQ(graph.names()[stored.autograd_node], "TBackward0");
  EXPECT_EQ(stored.phase, Phase::backward);
  EXPECT_EQ(stored.sequence, 7U);
  ASSERT_EQ(graph.inputs(stored).size(), 2U);
  EXPECT_EQ(graph.inputs(stored)[1], h);
  EXPECT_EQ(graph.outputs(stored)[0], wt);
  EXPECT_EQ(graph.attributes(stored).get_int("dim0", -1), 0);
  EXPECT_EQ(graph.attributes(stored).get_double("scale", 0), 0.5);
  EXPECT_EQ(Shape(graph.shape(wt).begin(), graph.shape(wt).end()), (Shape{3, 2}));
  EXPECT_EQ(Shape(graph.strides(wt).begin(), graph.strides(wt).end()), (Shape{1, 3}));
  EXPECT_EQ(graph.bytes_of(w), Bytes(24));
  EXPECT_EQ(graph.element_count(h), 1);
  EXPECT_EQ(graph.parameter_count(), 6);
  EXPECT_EQ(graph.parameter_tensors(), 1);
  EXPECT_EQ(graph.storage(weight).root, Root::parameter);
  EXPECT_FALSE(graph.storage(host).on_gpu);
  EXPECT_TRUE(verify(graph).ok());
}

TEST(Graph, StoresEqualTensorsAndAttributesOnce) {
  GraphBuilder builder;
  const StorageId storage = builder.add_storage(Bytes(24));
  const TensorId a = builder.add_tensor(storage, DType::float32, Shape{2, 3});
  EXPECT_EQ(a, builder.add_tensor(storage, DType::float32, Shape{2, 3}));
  EXPECT_NE(a, builder.add_tensor(storage, DType::int32, Shape{2, 3}));
  EXPECT_NE(a, builder.add_tensor(storage, DType::float32, Shape{3, 2}));
  EXPECT_NE(a, builder.add_tensor(storage, DType::float32, Shape{2, 3}, Shape{3, 1}));
  EXPECT_EQ(builder.intern({{"dim", int64_t{1}}}), builder.intern({{"dim", int64_t{1}}}));
  EXPECT_NE(builder.intern({{"dim", int64_t{1}}}), builder.intern({{"dim", int64_t{2}}}));
  EXPECT_EQ(builder.find_attributes("{\"never\": 1}"), AttributesId());
}

// A chain of a million ops, each with a storage and a shape of its own in part: the columns stay near 100 bytes an op.
TEST(Graph, HoldsAMillionOps) {
  constexpr size_t kOps = 1'000'000;
  GraphBuilder builder;
  StorageId storage = builder.add_storage(Bytes(4096));
  builder.mark_root(storage, Root::input, "x");
  TensorId last = builder.add_tensor(storage, DType::float32, Shape{32, 32});
  for (size_t i = 0; i < kOps; ++i) {
    storage = builder.add_storage(Bytes(4096));
    const TensorId next = builder.add_tensor(storage, DType::float32, Shape{static_cast<int64_t>(1 + i % 512), 2});
    const OpId op = builder.add_op({.name = i % 2 == 0 ? "aten.relu.default" : "aten.neg.default",
                                    .module = "layer",
                                    .inputs = std::span(&last, 1),
                                    .outputs = std::span(&next, 1)});
    builder.mark_freed(storage, OpId(std::min(kOps, size_t{op.value} + 2)));
    last = next;
  }
  const Graph graph = builder.finish();
  EXPECT_EQ(graph.op_count(), kOps);
  EXPECT_EQ(graph.names().size(), 5U);
  const Status status = verify(graph);
  EXPECT_TRUE(status.ok()) << status.error().message();

  const size_t bytes = graph.op_count() * (sizeof(Op) + 2 * sizeof(TensorId)) +
                       graph.tensors().size() * sizeof(Tensor) + graph.storages().size() * sizeof(Storage);
  EXPECT_LE(bytes / kOps, 100U);
}

}  // namespace
}  // namespace forerun
