// Sizes are from allocator traces and single-op measurements of an H200.
#include "memory/op_temporaries.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

struct TensorSpec {
  Shape shape;
  DType dtype = DType::float32;
  Shape strides;
};

// What one op takes; temporaries of no bytes are left out.
std::vector<Temporary> temporaries(const std::string& name, const std::vector<TensorSpec>& inputs,
                                   const std::vector<TensorSpec>& outputs, const Attributes& attributes = {},
                                   const TemporaryOptions& options = {}) {
  GraphBuilder builder;
  const auto add = [&](const std::vector<TensorSpec>& specs) {
    std::vector<TensorId> tensors;
    for (const TensorSpec& spec : specs) {
      int64_t count = 1;
      for (const int64_t extent : spec.shape) count *= extent;
      const StorageId storage = builder.add_storage(Bytes(count * size_of(spec.dtype)), true);
      tensors.push_back(builder.add_tensor(storage, spec.dtype, spec.shape, spec.strides));
    }
    return tensors;
  };
  const std::vector<TensorId> in = add(inputs);
  const std::vector<TensorId> out = add(outputs);
  builder.add_op({.name = name, .phase = Phase::backward, .inputs = in, .outputs = out, .attributes = &attributes});
  const Graph graph = builder.finish();
  std::vector<Temporary> found;
  OpTemporaries(graph, options).append(graph.ops()[0], found);
  std::erase_if(found, [](const Temporary& temporary) { return temporary.bytes == 0; });
  return found;
}

std::vector<int64_t> sizes(const std::vector<Temporary>& temporaries) {
  std::vector<int64_t> result;
  for (const Temporary& temporary : temporaries) result.push_back(temporary.bytes);
  return result;
}

using Sizes = std::vector<int64_t>;

TEST(OpTemporaries, LayerNormBackwardKeepsPartialSums) {
  const Shape shape = {1413, 205, 96};
  const Attributes attributes = {{"normalized_shape", Shape{96}}};
  const auto found =
      temporaries("aten.native_layer_norm_backward.default", {{shape}, {shape}}, {{shape}, {{96}}, {{96}}}, attributes);
  EXPECT_EQ(sizes(found), (Sizes{3476352, 3476352, 1744896, 8}));
  EXPECT_EQ(found[0].outputs_before, 1U);
  const Shape few_rows = {12, 205, 96};
  EXPECT_TRUE(temporaries("aten.native_layer_norm_backward.default", {{few_rows}, {few_rows}},
                          {{few_rows}, {{96}}, {{96}}}, attributes)
                  .empty());
}

TEST(OpTemporaries, LayerNormCopiesWhatIsNotContiguous) {
  const Attributes attributes = {{"normalized_shape", Shape{160}}};
  const TensorSpec swapped{{2, 32, 160}, DType::float32, {160, 320, 1}};
  const TensorSpec plain{{2, 32, 160}, DType::float32, {5120, 160, 1}};
  EXPECT_EQ(sizes(temporaries("aten.native_layer_norm.default", {swapped}, {plain}, attributes)), Sizes{40960});
  EXPECT_TRUE(temporaries("aten.native_layer_norm.default", {plain}, {plain}, attributes).empty());
}

TEST(OpTemporaries, AttentionBackwardSumsInFloat) {
  const auto attention = [](const std::string& kind, const Shape& shape, DType dtype) {
    const TensorSpec tensor{shape, dtype};
    return sizes(temporaries("aten._scaled_dot_product_" + kind + "_attention_backward.default",
                             {tensor, tensor, tensor, tensor}, {tensor, tensor, tensor}));
  };
  EXPECT_EQ(attention("cudnn", {288, 5, 164, 128}, DType::bfloat16), Sizes{121858816});
  EXPECT_EQ(attention("efficient", {40, 9, 240, 48}, DType::float32), (Sizes{345600, 345600, 23616000}));
  EXPECT_EQ(attention("efficient", {3, 2, 83, 128}, DType::float32), (Sizes{1992, 1992, 393408}));
}

TEST(OpTemporaries, BatchNormSumsWhereChannelsLieTogether) {
  const TensorSpec last{{136, 256, 68, 68}, DType::bfloat16, {1183744, 1, 17408, 256}};
  const TensorSpec first{{136, 256, 68, 68}, DType::bfloat16, {1183744, 4624, 68, 1}};
  const TensorSpec each{{256}};
  EXPECT_EQ(sizes(temporaries("aten.native_batch_norm.default", {last}, {last, each, each})), (Sizes{524288, 32}));
  EXPECT_TRUE(temporaries("aten.native_batch_norm.default", {first}, {first, each, each}).empty());
  const auto backward = temporaries("aten.native_batch_norm_backward.default", {last, last}, {last, each, each});
  EXPECT_EQ(sizes(backward), (Sizes{1024, 1024, 262144, 32}));
  EXPECT_EQ(backward[2].outputs_before, 2U);
  const TensorSpec exact{{112, 64, 160, 160}, DType::float32, {1638400, 1, 10240, 64}};
  EXPECT_NEAR(static_cast<double>(sizes(temporaries("aten.cudnn_batch_norm.default", {exact}, {exact}))[0]), 23117876,
              2048);
}

TEST(OpTemporaries, TellsTheOrderOfOutputs) {
  const auto places = [](OutputOrder order) {
    return Sizes{static_cast<int64_t>(output_at(order, 0, 3)), static_cast<int64_t>(output_at(order, 1, 3)),
                 static_cast<int64_t>(output_at(order, 2, 3))};
  };
  EXPECT_EQ(places(OutputOrder::as_given), (Sizes{0, 1, 2}));
  EXPECT_EQ(places(OutputOrder::reversed), (Sizes{2, 1, 0}));
  EXPECT_EQ(places(OutputOrder::first_last), (Sizes{1, 2, 0}));
  EXPECT_EQ(places(OutputOrder::second_first), (Sizes{1, 0, 2}));
  EXPECT_EQ(output_at(OutputOrder::second_first, 0, 1), 0U);
}

TEST(OpTemporaries, EmbeddingBackwardSortsManyIndices) {
  const auto found = temporaries("aten.embedding_dense_backward.default", {{{77, 304, 256}}, {{77, 304}, DType::int64}},
                                 {{{24076, 256}}});
  const Sizes bytes = sizes(found);
  EXPECT_EQ(bytes.back(), 26365952);
  EXPECT_EQ(bytes[bytes.size() - 2], 205984);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 187264), 5);
  EXPECT_TRUE(
      temporaries("aten.embedding_dense_backward.default", {{{4, 72, 256}}, {{4, 72}, DType::int64}}, {{{2, 256}}})
          .empty());
}

TEST(OpTemporaries, BiasGradientsAreColumnSums) {
  const Attributes rows = {{"dim", Shape{0}}};
  EXPECT_EQ(sizes(temporaries("aten.sum.dim_IntList", {{{9053, 96}}}, {{{1, 96}}}, rows)), (Sizes{1744896, 8}));
  EXPECT_TRUE(temporaries("aten.sum.dim_IntList", {{{64, 96}}}, {{{1, 96}}}, rows).empty());
  // The same columns, transposed in memory: lanes combine their sums.
  const auto transposed =
      temporaries("aten.sum.dim_IntList", {{{1 << 20, 8}, DType::float32, {1, 1 << 20}}}, {{{1, 8}}}, rows);
  const auto straight = temporaries("aten.sum.dim_IntList", {{{1 << 20, 8}}}, {{{1, 8}}}, rows);
  ASSERT_EQ(transposed.size(), 2U);
  ASSERT_EQ(straight.size(), 2U);
  EXPECT_LT(transposed[0].bytes, straight[0].bytes);
}

TEST(OpTemporaries, SoftmaxBackwardMultipliesFirst) {
  const TensorSpec tensor{{5, 8, 112, 112}};
  EXPECT_EQ(sizes(temporaries("aten._softmax_backward_data.default", {tensor, tensor}, {tensor})), Sizes{2007040});
}

TEST(OpTemporaries, ConvolutionsNeedTheTable) {
  const TensorSpec image{{8, 64, 56, 56}};
  const TensorSpec weight{{64, 64, 3, 3}};
  EXPECT_TRUE(temporaries("aten.convolution.default", {image, weight}, {image}).empty());
}

TEST(OpTemporaries, RecurrentLayersCopyBatchFirstInputs) {
  const WorkspaceTable empty;
  TemporaryOptions options;
  options.workspaces = &empty;
  const Attributes attributes = {{"mode", int64_t{3}}, {"hidden_size", int64_t{64}}, {"batch_first", true}};
  const TensorSpec batch_first{{10, 20, 32}, DType::float32, {640, 32, 1}};
  const TensorSpec steps_first{{10, 20, 32}, DType::float32, {32, 320, 1}};
  const std::vector<TensorSpec> results = {{{10, 20, 64}}, {{1, 10, 64}}, {{0}}, {{100}, DType::uint8}};
  const auto copied = temporaries("aten._cudnn_rnn.default", {batch_first, {{5000}}}, results, attributes, options);
  ASSERT_EQ(copied.size(), 2U);
  EXPECT_EQ(copied[0].bytes, 10 * 20 * 32 * 4);
  EXPECT_EQ(copied[0].outputs_before, 0U);
  EXPECT_EQ(copied[1].outputs_before, 3U);
  EXPECT_EQ(temporaries("aten._cudnn_rnn.default", {steps_first, {{5000}}}, results, attributes, options).size(), 1U);
}

}  // namespace
}  // namespace forerun
