#include "derive/work.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace forerun {
namespace {

constexpr DType f32 = DType::float32;
constexpr DType bf16 = DType::bfloat16;
constexpr DType i64 = DType::int64;

// Builds a graph of one op, each tensor with a storage of its own unless a storage is shared by hand.
class OneOp {
 public:
  TensorId tensor(const Shape& shape, DType dtype = f32, bool on_gpu = true) {
    int64_t bytes = size_of(dtype);
    for (const int64_t extent : shape) bytes *= extent;
    return builder_.add_tensor(builder_.add_storage(Bytes(bytes), on_gpu), dtype, shape);
  }
  // Another view of a tensor's storage.
  TensorId view(TensorId of, const Shape& shape) {
    const Tensor base = builder_.graph().tensor(of);
    return builder_.add_tensor(base.storage, base.dtype, shape);
  }
  OpWork work(std::string_view name, const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs,
              const Attributes& attributes = {}) {
    builder_.add_op({name, Phase::forward, "", inputs, outputs, &attributes, 0, ""});
    const Graph graph = builder_.finish();
    return work_of(graph, graph.ops()[0]);
  }

 private:
  GraphBuilder builder_;
};

TEST(WorkTest, Views) {
  OneOp b;
  const TensorId x = b.tensor({4, 8});
  const OpWork work = b.work("aten.t.default", {x}, {b.view(x, {8, 4})});
  EXPECT_EQ(work.cls, OpClass::view);
  EXPECT_EQ(work.bytes(), Bytes(0));
  EXPECT_EQ(work.flops, Flops(0));
}

TEST(WorkTest, MatrixProducts) {
  OneOp b;
  OpWork work =
      b.work("aten.addmm.default", {b.tensor({30}), b.tensor({10, 20}), b.tensor({20, 30})}, {b.tensor({10, 30})});
  EXPECT_EQ(work.flops, Flops(2 * 10 * 20 * 30));
  EXPECT_EQ(work.read, Bytes(4 * (30 + 200 + 600)));
  EXPECT_EQ(work.written, Bytes(4 * 300));
  ASSERT_EQ(work.gemm_count, 1);
  EXPECT_EQ(work.gemms()[0], (GemmShape{1, 1, 10, 30, 20}));
  EXPECT_FALSE(work.aligned);  // rows of 30 floats
  EXPECT_TRUE(work.on_gpu);

  OneOp c;
  work = c.work("aten.bmm.default", {c.tensor({6, 16, 8}, bf16), c.tensor({6, 8, 32}, bf16)},
                {c.tensor({6, 16, 32}, bf16)});
  EXPECT_EQ(work.gemms()[0], (GemmShape{1, 6, 16, 32, 8}));
  EXPECT_EQ(work.flops, Flops(2 * 6 * 16 * 8 * 32));
  EXPECT_EQ(work.compute_dtype, bf16);
  EXPECT_TRUE(work.aligned);
  EXPECT_TRUE(work.tensor_core_eligible);

  OneOp d;
  work = d.work("aten.linear.default", {d.tensor({2, 5, 8}), d.tensor({3, 8})}, {d.tensor({2, 5, 3})});
  EXPECT_EQ(work.gemms()[0], (GemmShape{1, 1, 10, 3, 8}));
}

Attributes conv_attributes(int64_t groups, bool transposed = false, std::vector<bool> mask = {}) {
  Attributes attributes{{"groups", groups}, {"transposed", transposed}};
  if (!mask.empty()) attributes.set("output_mask", mask);
  return attributes;
}

TEST(WorkTest, Convolution) {
  OneOp b;
  const OpWork work = b.work("aten.convolution.default", {b.tensor({2, 8, 10, 10}), b.tensor({16, 8, 3, 3})},
                             {b.tensor({2, 16, 10, 10})}, conv_attributes(1));
  EXPECT_EQ(work.flops, Flops(2.0 * 2 * 16 * 100 * 8 * 9));
  EXPECT_EQ(work.gemms()[0], (GemmShape{1, 1, 200, 16, 72}));
  EXPECT_EQ(work.window, 9);
  EXPECT_EQ(work.read, Bytes(4 * (1600 + 16 * 8 * 9)));
  EXPECT_EQ(work.written, Bytes(4 * 3200));
}

TEST(WorkTest, PlainWindowsOfThreeByThreeAreWinograds) {
  const auto squares = [](int64_t window, int64_t stride, int64_t dilation, int64_t groups, bool transposed) {
    OneOp b;
    Attributes attributes = conv_attributes(groups, transposed);
    attributes.set("stride", Shape{stride, stride});
    attributes.set("dilation", Shape{dilation, dilation});
    return b
        .work("aten.convolution.default", {b.tensor({2, 8, 10, 10}), b.tensor({8, 8 / groups, window, window})},
              {b.tensor({2, 8, 10, 9})}, attributes)
        .winograd_squares;
  };
  EXPECT_EQ(squares(3, 1, 1, 1, false), 2 * 3 * 3) << "of 4 x 4, the last ones not full";
  EXPECT_EQ(squares(5, 1, 1, 1, false), 0);
  EXPECT_EQ(squares(3, 2, 1, 1, false), 0);
  EXPECT_EQ(squares(3, 1, 2, 1, false), 0);
  EXPECT_EQ(squares(3, 1, 1, 2, false), 0);
  EXPECT_EQ(squares(3, 1, 1, 1, true), 0);
}

TEST(WorkTest, GroupedDepthwiseAndTransposedConvolutions) {
  OneOp b;
  OpWork work = b.work("aten.convolution.default", {b.tensor({2, 8, 10, 10}), b.tensor({16, 2, 3, 3})},
                       {b.tensor({2, 16, 10, 10})}, conv_attributes(4));
  EXPECT_EQ(work.gemms()[0], (GemmShape{1, 4, 200, 4, 18}));
  EXPECT_EQ(work.flops, Flops(2.0 * 2 * 16 * 100 * 2 * 9));
  EXPECT_TRUE(work.tensor_core_eligible);

  OneOp c;
  work = c.work("aten.convolution.default", {c.tensor({1, 8, 4, 4}), c.tensor({8, 1, 3, 3})}, {c.tensor({1, 8, 4, 4})},
                conv_attributes(8));
  EXPECT_FALSE(work.tensor_core_eligible);
  EXPECT_EQ(work.flops, Flops(2.0 * 8 * 16 * 9));

  // Transposed: each input pixel meets the whole weight [in, out, 2, 2].
  OneOp d;
  work = d.work("aten.convolution.default", {d.tensor({1, 6, 5, 5}), d.tensor({6, 4, 2, 2})},
                {d.tensor({1, 4, 10, 10})}, conv_attributes(1, true));
  EXPECT_EQ(work.flops, Flops(2.0 * 25 * 6 * 4 * 4));
}

TEST(WorkTest, ConvolutionGradientsFollowTheMask) {
  const auto make = [](std::vector<bool> mask) {
    OneOp b;
    return b.work("aten.convolution_backward.default",
                  {b.tensor({2, 16, 5, 5}), b.tensor({2, 8, 10, 10}), b.tensor({16, 8, 3, 3})},
                  {b.tensor({2, 8, 10, 10}), b.tensor({16, 8, 3, 3})}, conv_attributes(1, false, std::move(mask)));
  };
  const double one = 2.0 * 2 * 16 * 25 * 8 * 9;
  const OpWork both = make({true, true, false});
  EXPECT_EQ(both.flops, Flops(2 * one));
  EXPECT_EQ(both.gemms()[0], (GemmShape{1, 1, 50, 72, 16}));
  EXPECT_EQ(both.gemms()[1], (GemmShape{1, 1, 16, 72, 50}));
  EXPECT_EQ(both.read, Bytes(4 * (800 + 1600 + 1152)));
  const OpWork weights = make({false, true, false});
  EXPECT_EQ(weights.flops, Flops(one));
  EXPECT_EQ(weights.read, Bytes(4 * (800 + 1600)));
  EXPECT_EQ(make({true, false, false}).flops, Flops(one));
}

TEST(WorkTest, Attention) {
  const auto make = [](bool causal, bool backward) {
    OneOp b;
    const TensorId qkv = b.tensor({3, 2, 4, 10, 8}, bf16);  // one storage, three views
    const TensorId part = b.view(qkv, {2, 4, 10, 8});
    std::vector<TensorId> inputs = {part, part, part};
    if (backward) inputs.insert(inputs.begin(), b.tensor({2, 4, 10, 8}, bf16));
    const Attributes attributes{{"is_causal", causal}};
    return b.work(backward ? "aten._scaled_dot_product_flash_attention_backward.default"
                           : "aten._scaled_dot_product_flash_attention.default",
                  inputs, {b.tensor({2, 4, 10, 8}, bf16)}, attributes);
  };
  const double full = 4.0 * 2 * 4 * 10 * 10 * 8;
  EXPECT_EQ(make(false, false).flops, Flops(full));
  EXPECT_EQ(make(true, false).flops, Flops(full / 2));
  EXPECT_EQ(make(false, true).flops, Flops(full * 2.5));
  EXPECT_EQ(make(false, false).read, Bytes(2 * 3 * 640));
  EXPECT_EQ(make(false, false).written, Bytes(2 * 640));
}

TEST(WorkTest, RecurrentLayers) {
  const auto make = [](int64_t mode, bool backward) {
    OneOp b;
    const Attributes attributes{{"mode", mode},
                                {"hidden_size", int64_t{6}},
                                {"num_layers", int64_t{2}},
                                {"batch_first", true},
                                {"bidirectional", false}};
    return b.work(backward ? "aten._cudnn_rnn_backward.default" : "aten._cudnn_rnn.default", {b.tensor({3, 7, 4})},
                  {b.tensor({3, 7, 6})}, attributes);
  };
  // Two layers: inputs 4 and 6 wide, state 6 wide; batch 3, 7 steps.
  const auto flops = [](double gates) { return 2.0 * 3 * 7 * gates * 6 * (4 + 6 + 6 + 6); };
  EXPECT_EQ(make(2, false).flops, Flops(flops(4)));
  EXPECT_EQ(make(3, false).flops, Flops(flops(3)));
  EXPECT_EQ(make(0, false).flops, Flops(flops(1)));
  EXPECT_EQ(make(2, true).flops, Flops(2 * flops(4)));
  EXPECT_EQ(make(2, false).steps, 14);
  EXPECT_EQ(make(2, false).step_width, 24);
}

TEST(WorkTest, ElementwiseAndInPlace) {
  OneOp b;
  OpWork work = b.work("aten.add.Tensor", {b.tensor({10, 10}), b.tensor({10})}, {b.tensor({10, 10})});
  EXPECT_EQ(work.flops, Flops(100));
  EXPECT_EQ(work.read, Bytes(440));
  EXPECT_EQ(work.written, Bytes(400));

  OneOp c;
  const TensorId x = c.tensor({100});
  work = c.work("aten.relu_.default", {x}, {x});
  EXPECT_EQ(work.read, Bytes(400));
  EXPECT_EQ(work.written, Bytes(400));

  OneOp d;
  const TensorId target = d.tensor({100});
  work = d.work("aten.copy_.default", {target, d.tensor({100}, bf16)}, {target});
  EXPECT_EQ(work.read, Bytes(200));  // what is overwritten is not read
  EXPECT_EQ(work.written, Bytes(400));
}

TEST(WorkTest, SharedAndExpandedOperandsCountOnce) {
  OneOp b;
  const TensorId g = b.tensor({100});
  const TensorId v = b.tensor({100});
  EXPECT_EQ(b.work("aten.addcmul_.default", {v, g, g}, {v}).read, Bytes(800));
  OneOp c;
  const TensorId row = c.tensor({1, 10});
  EXPECT_EQ(c.work("aten.div.Scalar", {c.view(row, {50, 10})}, {c.tensor({50, 10})}).read, Bytes(40));
}

TEST(WorkTest, HostTensorsAreNoGpuWork) {
  OneOp b;
  const TensorId step = b.tensor({}, f32, false);
  EXPECT_FALSE(b.work("aten.add_.Tensor", {step}, {step}).on_gpu);
  OneOp c;
  EXPECT_FALSE(c.work("profiler._record_function_exit._RecordFunction", {}, {}).on_gpu);
}

TEST(WorkTest, NormalizationSoftmaxReductionPooling) {
  OneOp b;
  OpWork work = b.work("aten.cudnn_batch_norm_backward.default",
                       {b.tensor({2, 4, 5}), b.tensor({2, 4, 5}), b.tensor({4})}, {b.tensor({2, 4, 5}), b.tensor({4})});
  EXPECT_EQ(work.flops, Flops(10 * 40));
  EXPECT_EQ(work.bytes(), Bytes(4 * (40 + 40 + 4 + 40 + 4)));
  OneOp c;
  work = c.work("aten._softmax.default", {c.tensor({8, 8})}, {c.tensor({8, 8})});
  EXPECT_EQ(work.flops, Flops(5 * 64));
  OneOp d;
  work = d.work("aten.sum.dim_IntList", {d.tensor({8, 8})}, {d.tensor({1, 8})});
  EXPECT_EQ(work.flops, Flops(64));
  EXPECT_EQ(work.bytes(), Bytes(4 * 72));
  OneOp e;
  const Attributes window{{"kernel_size", Shape{3, 3}}};
  work = e.work("aten.avg_pool2d_backward.default", {e.tensor({1, 1, 4, 4}), e.tensor({1, 1, 8, 8})},
                {e.tensor({1, 1, 8, 8})}, window);
  EXPECT_EQ(work.flops, Flops(9 * 16));
  EXPECT_EQ(work.read, Bytes(4 * 16));  // the input counts for its shape only
  EXPECT_EQ(work.written, Bytes(4 * 64));
}

TEST(WorkTest, EmbeddingReadsRowsAndItsGradientWritesTheTable) {
  OneOp b;
  OpWork work = b.work("aten.embedding.default", {b.tensor({1000, 16}), b.tensor({5, 2}, i64)}, {b.tensor({5, 2, 16})});
  EXPECT_EQ(work.read, Bytes(10 * 16 * 4 + 10 * 8));
  EXPECT_EQ(work.written, Bytes(10 * 16 * 4));
  OneOp c;
  work = c.work("aten.embedding_dense_backward.default", {c.tensor({5, 2, 16}), c.tensor({5, 2}, i64)},
                {c.tensor({1000, 16})});
  EXPECT_EQ(work.written, Bytes(4 * (16000 + 160)));
  EXPECT_EQ(work.read, Bytes(4 * 160 + 80));
}

TEST(WorkTest, IndexingAndCopies) {
  OneOp b;
  EXPECT_EQ(b.work("aten.gather.default", {b.tensor({100, 100}), b.tensor({3, 3}, i64)}, {b.tensor({3, 3})}).read,
            Bytes(9 * 8 + 9 * 4));
  OneOp c;
  const TensorId target = c.tensor({100, 4});
  const OpWork put = c.work("aten.index_put_.default", {target, c.tensor({5}, i64), c.tensor({5, 4})}, {target});
  EXPECT_EQ(put.written, Bytes(80));
  OneOp d;
  const OpWork slice = d.work("aten.slice_backward.default", {d.tensor({5})}, {d.tensor({50})});
  EXPECT_EQ(slice.read, Bytes(20));
  EXPECT_EQ(slice.written, Bytes(220));
  OneOp e;
  const OpWork zeros = e.work("aten.ones_like.default", {e.tensor({50})}, {e.tensor({50})});
  EXPECT_EQ(zeros.read, Bytes(0));
  EXPECT_EQ(zeros.written, Bytes(200));
  OneOp f;
  const OpWork loss =
      f.work("aten.nll_loss_forward.default", {f.tensor({8, 1000}), f.tensor({8}, i64)}, {f.tensor({})});
  EXPECT_EQ(loss.read, Bytes(8 * 8 + 8 * 4));
}

TEST(WorkTest, OptimizerLists) {
  OneOp b;
  const std::vector<TensorId> lists = {b.tensor({10}), b.tensor({20}), b.tensor({10}),
                                       b.tensor({20}), b.tensor({10}), b.tensor({20})};
  OpWork work = b.work("aten._foreach_addcdiv_.Scalar", lists, {});
  EXPECT_EQ(work.tensors, 2);
  EXPECT_EQ(work.read, Bytes(4 * 90));
  EXPECT_EQ(work.written, Bytes(4 * 30));  // the first list, in place

  OneOp c;
  const std::vector<TensorId> in = {c.tensor({10}), c.tensor({20})};
  work = c.work("aten._foreach_sqrt.default", in, {c.tensor({10}), c.tensor({20})});
  EXPECT_EQ(work.tensors, 2);
  EXPECT_EQ(work.written, Bytes(120));

  // Adam: parameters, gradients, two moments, steps; all but gradients and steps are written.
  OneOp d;
  std::vector<TensorId> adam;
  for (int list = 0; list < 4; ++list) {
    adam.push_back(d.tensor({10}));
    adam.push_back(d.tensor({20}));
  }
  adam.push_back(d.tensor({}));
  adam.push_back(d.tensor({}));
  work = d.work("aten._fused_adam_.default", adam, {});
  EXPECT_EQ(work.tensors, 2);
  EXPECT_EQ(work.read, Bytes(4 * (4 * 30 + 2)));
  EXPECT_EQ(work.written, Bytes(4 * 3 * 30));
  EXPECT_EQ(work.flops, Flops(12 * 30));
}

TEST(WorkTest, UnknownOpsCountTheirBytes) {
  OneOp b;
  const OpWork work = b.work("mylib.secret.default", {b.tensor({10})}, {b.tensor({5})});
  EXPECT_EQ(work.cls, OpClass::opaque);
  EXPECT_EQ(work.bytes(), Bytes(60));
}

}  // namespace
}  // namespace forerun
