#include "graph/op_kinds.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

TEST(OpKinds, ShareANumberWhereOnlyTensorsDiffer) {
  GraphBuilder builder;
  const auto tensor = [&](const Shape& shape, const Shape& strides, DType dtype = DType::float32, bool on_gpu = true) {
    return builder.add_tensor(builder.add_storage(Bytes(1024), on_gpu), dtype, shape, strides);
  };
  const Attributes alpha{{"alpha", int64_t{2}}};
  const auto op = [&](const char* name, std::vector<TensorId> inputs, const Attributes* attributes = nullptr) {
    const TensorId output = tensor({4, 8}, {8, 1});
    builder.add_op({.name = name, .inputs = inputs, .outputs = {&output, 1}, .attributes = attributes});
  };
  const TensorId a = tensor({4, 8}, {8, 1}), b = tensor({4, 8}, {8, 1});
  op("aten.add.Tensor", {a, b});
  op("aten.add.Tensor", {b, a});                                              // 1: the same
  op("aten.add.Tensor", {a, a});                                              // 2: one storage read twice
  op("aten.add.Tensor", {a, b}, &alpha);                                      // 3: other attributes
  op("aten.mul.Tensor", {a, b});                                              // 4: another name
  op("aten.add.Tensor", {a, tensor({4, 8}, {1, 4})});                         // 5: other strides
  op("aten.add.Tensor", {a, tensor({4, 8}, {8, 1}, DType::bfloat16)});        // 6: another type
  op("aten.add.Tensor", {a, tensor({4, 8}, {8, 1}, DType::float32, false)});  // 7: on the host
  op("aten.add.Tensor", {a});                                                 // 8: fewer operands
  op("aten.add.Tensor", {a, b}, &alpha);                                      // 9: as 3
  const TensorId unknown = builder.add_tensor(builder.add_storage(Bytes(1024)), DType::float32, Shape{4, 8});
  op("aten.add.Tensor", {a, unknown});  // 10, 11: strides are not known
  op("aten.add.Tensor", {a, unknown});
  op("aten._foreach_add.Scalar", std::vector<TensorId>(100, a));  // 12, 13: very many
  op("aten._foreach_add.Scalar", std::vector<TensorId>(100, a));
  const Graph graph = builder.finish();
  OpKinds kinds(graph);
  std::vector<uint32_t> numbers;
  std::vector<bool> first;
  for (const Op& each : graph.ops()) {
    const OpKinds::Kind kind = kinds.of(each);
    numbers.push_back(kind.number);
    first.push_back(kind.first);
  }
  EXPECT_EQ(numbers, (std::vector<uint32_t>{0, 0, 1, 2, 3, 4, 5, 6, 7, 2, 8, 9, 10, 11}));
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i], i != 1 && i != 9) << i;
}

}  // namespace
}  // namespace forerun
