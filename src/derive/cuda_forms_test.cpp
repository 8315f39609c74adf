// Iterations as forerun.capture records them without a GPU, built by hand, and what becomes of them for a device.
#include "derive/cuda_forms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "derive/value.h"
#include "graph/graph_builder.h"

namespace forerun::derive {
namespace {

using Names = std::vector<std::string>;

// Appends recorded ops; every tensor gets a storage of its own.
struct Recording {
  GraphBuilder b;
  uint32_t sequence = 1;
  uint16_t piece = 0;

  TensorId tensor(const Shape& sizes, DType dtype = DType::float32, Shape strides = {}) {
    if (strides.empty()) strides = contiguous_strides(sizes);
    const StorageId storage = b.add_storage(Bytes(element_count(sizes) * size_of(dtype)));
    return b.add_tensor(storage, dtype, sizes, strides);
  }
  TensorId root(Root kind, const Shape& sizes, DType dtype = DType::float32) {
    const TensorId id = tensor(sizes, dtype);
    b.mark_root(storage_of(id), kind, "root");
    return id;
  }
  StorageId storage_of(TensorId id) const { return b.graph().tensor(id).storage; }
  void op(std::string_view name, const std::vector<TensorId>& in, const std::vector<TensorId>& out,
          const Attributes& attributes = {}, Phase phase = Phase::forward) {
    b.add_op({.name = name,
              .phase = phase,
              .module = "layer",
              .inputs = in,
              .outputs = out,
              .attributes = &attributes,
              .sequence = sequence,
              .autograd_node = phase == Phase::backward ? "Node" : "",
              .piece = piece});
  }
  void backward(std::string_view name, const std::vector<TensorId>& in, const std::vector<TensorId>& out,
                const Attributes& attributes = {}) {
    op(name, in, out, attributes, Phase::backward);
  }
  void free(TensorId id) { b.mark_freed(storage_of(id), OpId(b.op_count())); }

  Result<Graph> mapped(const DispatchTarget& target = {}) { return to_cuda_forms(b.finish(), target); }
};

Names names(const Graph& graph) {
  Names list;
  for (const Op& op : graph.ops()) list.push_back(graph.name(op));
  return list;
}

Shape shape_of(const Graph& graph, TensorId id) { return {graph.shape(id).begin(), graph.shape(id).end()}; }

// x -> batch norm -> relu, and back.
struct BatchNormRecording : Recording {
  TensorId x, y, gradient;

  explicit BatchNormRecording(const Shape& sizes, DType dtype = DType::float32, bool training = true,
                              uint16_t compiled_in = 0) {
    piece = compiled_in;
    const Shape features = {sizes[1]};
    x = tensor(sizes, dtype);
    op("aten.convolution.default", {}, {x});
    const TensorId weight = root(Root::parameter, features);
    const TensorId bias = root(Root::parameter, features);
    const TensorId mean = root(Root::buffer, features);
    const TensorId variance = root(Root::buffer, features);
    y = tensor(sizes, dtype);
    const TensorId saved_mean = tensor({training ? sizes[1] : 0});
    const TensorId saved_deviation = tensor({training ? sizes[1] : 0});
    op("aten.native_batch_norm.default", {x, weight, bias, mean, variance}, {y, saved_mean, saved_deviation},
       {{"training", training}, {"momentum", 0.1}, {"eps", 1e-5}});
    const TensorId z = tensor(sizes, dtype);
    op("aten.relu.default", {y}, {z});
    const TensorId g = tensor(sizes, dtype);
    backward("aten.threshold_backward.default", {z, y}, {g});
    gradient = tensor(sizes, dtype);
    const std::vector<bool> mask = {true, true, true};
    backward("aten.native_batch_norm_backward.default", {g, x, weight, mean, variance, saved_mean, saved_deviation},
             {gradient, tensor(features), tensor(features)},
             {{"train", training}, {"eps", 1e-5}, {"output_mask", mask}});
    free(x);
    free(saved_mean);
    backward("aten.convolution_backward.default", {gradient}, {tensor(sizes, dtype)});
  }
};

TEST(CudaForms, LeaveOtherOpsAsTheyAre) {
  Recording r;
  const TensorId x = r.root(Root::input, {4, 8});
  const TensorId y = r.tensor({4, 8});
  const TensorId z = r.tensor({8, 4}, DType::float32, {1, 8});
  r.op("aten.relu.default", {x}, {y}, {{"why", true}});
  r.backward("aten.t.default", {y}, {z});
  r.free(y);
  r.b.set_parameter_count(7);
  r.b.set_parameter_tensors(2);
  const Result<Graph> g = r.mapped();
  ASSERT_TRUE(g.ok()) << g.error().message();
  ASSERT_EQ(names(*g), (Names{"aten.relu.default", "aten.t.default"}));
  const Op& relu = g->ops()[0];
  EXPECT_EQ(g->attributes(relu).to_json(), R"({"why": true})");
  EXPECT_EQ(g->module(relu), "layer");
  EXPECT_EQ(g->storage(g->tensor(g->inputs(relu)[0]).storage).root, Root::input);
  EXPECT_EQ(g->storage(g->tensor(g->outputs(relu)[0]).storage).freed_before, OpId(2));
  EXPECT_EQ(g->strides(g->outputs(g->ops()[1])[0])[0], 1);
  EXPECT_EQ(g->names()[g->ops()[1].autograd_node], "Node");
  EXPECT_EQ(g->ops()[1].sequence, 1u);
  EXPECT_EQ(g->parameter_count(), 7);
  EXPECT_EQ(g->parameter_tensors(), 2);
}

TEST(CudaForms, KeepWhatDynamoTracedTogether) {
  BatchNormRecording r({4, 8, 5, 5}, DType::float32, true, 3);
  const Result<Graph> g = r.mapped();
  ASSERT_TRUE(g.ok()) << g.error().message();
  for (const Op& op : g->ops()) EXPECT_EQ(op.piece, 3) << g->name(op);
}

TEST(CudaForms, RunBatchNormThroughCudnn) {
  BatchNormRecording r({4, 8, 5, 5});
  const Result<Graph> g = r.mapped();
  ASSERT_TRUE(g.ok()) << g.error().message();
  ASSERT_EQ(names(*g), (Names{"aten.convolution.default", "aten.cudnn_batch_norm.default", "aten.relu.default",
                              "aten.threshold_backward.default", "aten.cudnn_batch_norm_backward.default",
                              "aten.convolution_backward.default"}));
  const Op& forward = g->ops()[1];
  const Op& backward = g->ops()[4];
  EXPECT_EQ(forward.output_count, 4u);
  EXPECT_EQ(forward.sequence, backward.sequence);
  EXPECT_EQ(backward.phase, Phase::backward);
  EXPECT_EQ(g->module(backward), "layer");
  EXPECT_EQ(g->names()[backward.autograd_node], "CudnnBatchNormBackward0");
  // The neighbours see what the new op made, and the reserve lives from one to the other.
  EXPECT_EQ(g->outputs(forward)[0], g->inputs(g->ops()[2])[0]);
  EXPECT_EQ(g->outputs(backward)[0], g->inputs(g->ops()[5])[0]);
  const TensorId reserve = g->outputs(forward)[3];
  EXPECT_EQ(g->inputs(backward)[7], reserve);
  EXPECT_EQ(g->storage(g->tensor(reserve).storage).freed_before, OpId(5));
  EXPECT_EQ(g->storage(g->tensor(g->inputs(forward)[0]).storage).freed_before, OpId(5));
}

TEST(CudaForms, RunBatchNormNativeWhereCudnnDoesNot) {
  const Names native = {"aten.convolution.default",         "aten.empty.memory_format",
                        "aten.native_batch_norm.default",   "aten.relu.default",
                        "aten.threshold_backward.default",  "aten.native_batch_norm_backward.default",
                        "aten.convolution_backward.default"};
  BatchNormRecording half({4, 8, 5, 5}, DType::bfloat16);
  EXPECT_EQ(names(*half.mapped()), native);
  BatchNormRecording flat({4, 8});
  EXPECT_EQ(names(*flat.mapped()), native);
  BatchNormRecording large({1089, 144, 144, 144});  // beyond 2^31 elements
  EXPECT_EQ(names(*large.mapped()), native);
}

// As weights are standardised: one row of features for each filter, a gain and no bias.
TEST(CudaForms, RunBatchNormWithAWeightAloneNatively) {
  Recording r;
  const TensorId x = r.root(Root::parameter, {1, 8, 27});
  const TensorId gain = r.root(Root::parameter, {8});
  const TensorId y = r.tensor({1, 8, 27});
  const TensorId mean = r.tensor({8});
  const TensorId deviation = r.tensor({8});
  r.op("aten.native_batch_norm.default", {x, gain}, {y, mean, deviation},
       {{"training", true}, {"momentum", 0.0}, {"eps", 1e-5}});
  const std::vector<bool> mask = {true, true, false};
  r.backward("aten.native_batch_norm_backward.default", {y, x, gain, mean, deviation},
             {r.tensor({1, 8, 27}), r.tensor({8})}, {{"train", true}, {"eps", 1e-5}, {"output_mask", mask}});
  const Result<Graph> g = r.mapped();
  ASSERT_TRUE(g.ok()) << g.error().message();
  EXPECT_EQ(names(*g), (Names{"aten.empty.memory_format", "aten.native_batch_norm.default",
                              "aten.native_batch_norm_backward.default"}));
}

TEST(CudaForms, EvaluateBatchNormThroughCudnnAndGoBackNatively) {
  BatchNormRecording r({4, 8, 5, 5}, DType::float32, false);
  const Result<Graph> g = r.mapped();
  ASSERT_TRUE(g.ok()) << g.error().message();
  EXPECT_EQ(names(*g)[1], "aten.cudnn_batch_norm.default");
  EXPECT_EQ(names(*g)[4], "aten.native_batch_norm_backward.default");
  EXPECT_FALSE(g->attributes(g->ops()[4]).get_bool("train", true));
}

struct AttentionCase {
  DType dtype = DType::float32;
  int64_t key_heads = 4;
  bool mask = false;
  bool mask_gradient = false;
  bool causal = false;
  Shape strides = {};  // of the query
};

// Attention with the detaches by which autograd keeps its result, and back.
struct AttentionRecording : Recording {
  TensorId out, gradient, log_sum;

  explicit AttentionRecording(const AttentionCase& c) {
    const Shape q = {2, 4, 50, 64};
    const Shape k = {2, c.key_heads, 50, 64};
    std::vector<TensorId> inputs = {tensor(q, c.dtype, c.strides), tensor(k, c.dtype), tensor(k, c.dtype)};
    if (c.mask) inputs.push_back(tensor({1, 1, 50, 50}, c.dtype));
    op("aten.mm.default", {}, inputs);
    out = tensor(q, c.dtype, c.strides);
    log_sum = tensor({2, 4, 50});
    const Attributes options = {{"dropout_p", 0.1},
                                {"is_causal", c.causal},
                                {"enable_gqa", c.key_heads != 4},
                                {"mask_gradient", c.mask_gradient}};
    op("forerun.attention.default", inputs, {out, log_sum}, options);
    op("aten.detach.default", {out}, {out});
    op("aten.relu.default", {out}, {tensor(q, c.dtype)});
    const TensorId g = tensor(q, c.dtype);
    backward("aten.threshold_backward.default", {}, {g});
    backward("aten.detach.default", {out}, {out});
    std::vector<TensorId> gradients = {tensor(q, c.dtype), tensor(k, c.dtype), tensor(k, c.dtype)};
    if (c.mask_gradient) gradients.push_back(tensor({1, 1, 50, 50}, c.dtype));
    std::vector<TensorId> operands = {g};
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    operands.insert(operands.end(), {out, log_sum});
    backward("forerun.attention_backward.default", operands, gradients, options);
    backward("aten.mm.default", gradients, {tensor(q, c.dtype)});
  }
};

Names attention_names(const std::string& kernel) {
  return {"aten.mm.default",
          "aten._scaled_dot_product_" + kernel + "_attention.default",
          "aten.detach.default",
          "aten.relu.default",
          "aten.threshold_backward.default",
          "aten.detach.default",
          "aten._scaled_dot_product_" + kernel + "_attention_backward.default",
          "aten.mm.default"};
}

TEST(CudaForms, TakeTheKernelOfTheDeviceForAttention) {
  const DispatchTarget hopper = {.cudnn_attention = true};
  const DispatchTarget ampere = {.cudnn_attention = false};
  const AttentionCase half = {.dtype = DType::bfloat16};
  const AttentionCase masked = {.dtype = DType::bfloat16, .mask = true};
  EXPECT_EQ(names(*AttentionRecording({}).mapped(hopper)), attention_names("efficient"));
  EXPECT_EQ(names(*AttentionRecording({}).mapped(ampere)), attention_names("efficient"));
  EXPECT_EQ(names(*AttentionRecording(half).mapped(hopper)), attention_names("cudnn"));
  EXPECT_EQ(names(*AttentionRecording(half).mapped(ampere)), attention_names("flash"));
  EXPECT_EQ(names(*AttentionRecording(masked).mapped(hopper)), attention_names("cudnn"));
  EXPECT_EQ(names(*AttentionRecording(masked).mapped(ampere)), attention_names("efficient"));
}

// Models of transformers mask attention while they are traced: no fused kernel takes the mask of an encoder; that of a decoder stands in
// for is_causal, and key heads are repeated.
TEST(CudaForms, MaskAttentionOfTracedModels) {
  const DispatchTarget traced = {.cudnn_attention = true, .traced_masks = true};
  const Names encoder = names(*AttentionRecording({}).mapped(traced));
  EXPECT_EQ(std::count(encoder.begin(), encoder.end(), "aten.bmm.default"), 6);
  const Result<Graph> decoder =
      AttentionRecording({.dtype = DType::bfloat16, .key_heads = 2, .causal = true}).mapped(traced);
  ASSERT_TRUE(decoder.ok()) << decoder.error().message();
  const Names all = names(*decoder);
  EXPECT_EQ(std::count(all.begin(), all.end(), "aten._scaled_dot_product_cudnn_attention.default"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "aten.clone.default"), 2);  // of keys and values
  for (const Op& op : decoder->ops()) {
    if (decoder->name(op) != "aten._scaled_dot_product_cudnn_attention.default") continue;
    EXPECT_EQ(op.input_count, 4u);
    EXPECT_FALSE(decoder->attributes(op).get_bool("is_causal", false));
  }
}

// Where Dynamo was asked it tells each call, whatever the model reads.
TEST(CudaForms, MaskWhatDynamoSawMasked) {
  const std::vector<bool> masked = {true}, plain = {false};
  const Names traced = names(*AttentionRecording({}).mapped({.cudnn_attention = true, .masks = &masked}));
  EXPECT_EQ(std::count(traced.begin(), traced.end(), "aten.bmm.default"), 6);
  const DispatchTarget as_it_is = {.cudnn_attention = true, .traced_masks = true, .masks = &plain};
  EXPECT_EQ(names(*AttentionRecording({}).mapped(as_it_is)), attention_names("efficient"));
}

TEST(CudaForms, GiveAttentionTheResultsOfItsKernel) {
  AttentionRecording r({});
  const Result<Graph> g = r.mapped();
  ASSERT_TRUE(g.ok()) << g.error().message();
  const Op& forward = g->ops()[1];
  const Op& backward = g->ops()[6];
  ASSERT_EQ(forward.output_count, 4u);
  EXPECT_EQ(shape_of(*g, g->outputs(forward)[1]), (Shape{2, 4, 64}));  // rows padded to 32
  EXPECT_EQ(g->attributes(forward).get_double("dropout_p", 0), 0.1);
  EXPECT_EQ(g->attributes(forward).find("mask_gradient"), nullptr);
  ASSERT_EQ(backward.input_count, 8u);
  EXPECT_EQ(g->inputs(backward)[5], g->outputs(forward)[1]);
  EXPECT_EQ(g->names()[backward.autograd_node], "ScaledDotProductEfficientAttentionBackward0");
  EXPECT_EQ(g->storage(g->tensor(g->outputs(forward)[2]).storage).freed_before, OpId(7));
  EXPECT_EQ(g->inputs(g->ops()[7])[2], g->outputs(backward)[2]);
}

TEST(CudaForms, GiveAMaskItsGradient) {
  const AttentionCase c = {.dtype = DType::bfloat16, .mask = true, .mask_gradient = true};
  const Result<Graph> g = AttentionRecording(c).mapped();
  ASSERT_TRUE(g.ok()) << g.error().message();
  EXPECT_EQ(names(*g), attention_names("efficient"));
  EXPECT_EQ(g->ops()[6].output_count, 4u);
  EXPECT_EQ(g->ops()[7].input_count, 4u);
}

// No fused kernel takes fewer key heads in float32: products, a softmax and their gradients.
TEST(CudaForms, ComposeAttentionThatNoKernelTakes) {
  const Result<Graph> g = AttentionRecording({.key_heads = 2}).mapped();
  ASSERT_TRUE(g.ok()) << g.error().message();
  int products[2] = {};
  for (const Op& op : g->ops()) {
    EXPECT_FALSE(g->name(op).starts_with("forerun.")) << g->name(op);
    if (g->name(op) == "aten.bmm.default") ++products[op.phase == Phase::backward ? 1 : 0];
  }
  EXPECT_EQ(products[0], 2);
  EXPECT_EQ(products[1], 4);
  const Op& last = g->ops().back();
  EXPECT_EQ(g->name(last), "aten.mm.default");
  EXPECT_EQ(shape_of(*g, g->inputs(last)[1]), (Shape{2, 2, 50, 64}));
}

struct RnnCase {
  std::string mode = "lstm";
  std::vector<bool> given = {true, false, false};
  int64_t layers = 2;
};

// A recurrent layer of width 8 over [4, 10, 6], its weights in one buffer.
struct RnnRecording : Recording {
  explicit RnnRecording(const RnnCase& c) {
    const bool lstm = c.mode == "lstm";
    const int64_t gates = lstm ? 4 : c.mode == "gru" ? 3 : 1;
    const TensorId x = root(Root::input, {4, 10, 6});
    std::vector<Shape> shapes;
    for (int64_t i = 0; i < c.layers; ++i) {
      shapes.insert(shapes.end(), {{gates * 8, i == 0 ? 6 : 8}, {gates * 8, 8}, {gates * 8}, {gates * 8}});
    }
    int64_t elements = 0;
    for (const Shape& s : shapes) elements += element_count(s);
    const StorageId flat = b.add_storage(Bytes(elements * 4));
    b.mark_root(flat, Root::parameter, "weight");
    const StorageId flat_gradient = b.add_storage(Bytes(elements * 4));
    std::vector<TensorId> states(lstm ? 2 : 1);
    for (TensorId& state : states) {
      state = tensor({c.layers, 4, 8});
      op("aten.zeros.default", {}, {state});
    }
    std::vector<TensorId> inputs = {x};
    inputs.insert(inputs.end(), states.begin(), states.end());
    for (const Shape& s : shapes) inputs.push_back(b.add_tensor(flat, DType::float32, s, contiguous_strides(s)));
    const TensorId out = tensor({4, 10, 8}, DType::float32, {8, 32, 1});
    std::vector<TensorId> outputs = {out};
    for (size_t i = 0; i < states.size(); ++i) outputs.push_back(tensor({c.layers, 4, 8}));
    outputs.push_back(tensor({0}, DType::uint8));
    Attributes options = {{"mode", c.mode},         {"has_biases", true},      {"layers", c.layers},
                          {"hidden", int64_t{8}},   {"proj_size", int64_t{0}}, {"dropout", 0.0},
                          {"bidirectional", false}, {"batch_first", true}};
    op("forerun.rnn.default", inputs, outputs, options);
    op("aten.detach.default", {out}, {out});
    op("aten.sum.default", {outputs[0], outputs[1]}, {tensor({})});
    std::vector<TensorId> operands;
    for (size_t i = 0; i < c.given.size(); ++i) {
      if (c.given[i]) operands.push_back(tensor(shape_of(b.graph(), outputs[i])));
    }
    backward("aten.expand.default", {}, operands);
    backward("aten.detach.default", {out}, {out});
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    operands.insert(operands.end(), {out, outputs.back()});
    std::vector<TensorId> gradients = {tensor({4, 10, 6})};
    for (size_t i = 0; i < states.size(); ++i) gradients.push_back(tensor({c.layers, 4, 8}));
    for (const Shape& s : shapes) {
      gradients.push_back(b.add_tensor(flat_gradient, DType::float32, s, contiguous_strides(s)));
    }
    options.set("given", c.given);
    backward("forerun.rnn_backward.default", operands, gradients, options);
    op("aten._foreach_add_.List", {gradients[states.size() + 1]}, {}, {}, Phase::update);
  }
};

TEST(CudaForms, RunRecurrentLayersThroughCudnn) {
  const Result<Graph> g = RnnRecording({}).mapped();
  ASSERT_TRUE(g.ok()) << g.error().message();
  ASSERT_EQ(names(*g), (Names{"aten.zeros.default", "aten.zeros.default", "aten._cudnn_rnn.default",
                              "aten.detach.default", "aten.sum.default", "aten.expand.default", "aten.detach.default",
                              "aten._cudnn_rnn_backward.default", "aten._foreach_add_.List"}));
  const Op& forward = g->ops()[2];
  const Op& backward = g->ops()[7];
  EXPECT_EQ(g->attributes(forward).get_int("mode", -1), 2);
  EXPECT_EQ(forward.input_count, 1u + 8 + 1 + 2);  // input, weights, their buffer, states
  ASSERT_EQ(forward.output_count, 5u);
  const int64_t sequence = 4 * 10 * 8 * 4;
  EXPECT_EQ(g->bytes_of(g->outputs(forward)[3]).value, sequence + 5 * 2 * sequence + 256);
  EXPECT_EQ(g->tensor(g->outputs(forward)[4]).storage, g->tensor(g->inputs(forward)[1]).storage);
  EXPECT_EQ(backward.input_count, forward.input_count + 3);  // result, gradient, reserve
  EXPECT_EQ(g->storage(g->tensor(g->outputs(forward)[3]).storage).freed_before, OpId(8));
  // All weight gradients in one buffer, which the optimizer sees.
  EXPECT_EQ(g->tensor(g->outputs(backward)[3]).storage, g->tensor(g->outputs(backward)[10]).storage);
  EXPECT_EQ(g->inputs(g->ops()[8])[0], g->outputs(backward)[3]);
  EXPECT_FALSE(g->storage(g->tensor(g->outputs(backward)[3]).storage).freed_before.valid());
}

TEST(CudaForms, TakeGradientsOfTheLastStates) {
  for (const RnnCase& c : {RnnCase{.mode = "gru", .given = {false, true}}, RnnCase{.given = {true, true, true}},
                           RnnCase{.mode = "tanh", .given = {true, true}, .layers = 1}}) {
    const Result<Graph> g = RnnRecording(c).mapped();
    ASSERT_TRUE(g.ok()) << c.mode << ": " << g.error().message();
    const Op& backward = g->ops()[g->op_count() - 2];
    EXPECT_EQ(g->name(backward), "aten._cudnn_rnn_backward.default");
    const auto gradients = static_cast<size_t>(std::count(c.given.begin(), c.given.end(), true));
    const size_t states = c.mode == "lstm" ? 2 : 1;
    EXPECT_EQ(backward.input_count, 1 + 4 * c.layers + 1 + states + 1 + gradients + 1);
  }
}

// Captured on fake CUDA tensors, cuDNN's op is there but its reserve is empty.
TEST(CudaForms, FillInTheReserveOfACudaCapture) {
  Recording r;
  const TensorId x = r.root(Root::input, {4, 10, 6});
  const TensorId reserve = r.tensor({0}, DType::uint8);
  const Attributes options = {
      {"mode", int64_t{3}}, {"hidden_size", int64_t{8}}, {"num_layers", int64_t{1}}, {"batch_first", true},
      {"train", true},      {"bidirectional", false}};
  r.op("aten._cudnn_rnn.default", {x}, {r.tensor({4, 10, 8}), r.tensor({1, 4, 8}), r.tensor({0}), reserve}, options);
  r.op("aten.native_batch_norm.default", {x}, {r.tensor({4})});
  r.backward("aten._cudnn_rnn_backward.default", {x, reserve}, {r.tensor({4, 10, 6})}, options);
  r.free(reserve);
  const Graph cuda = r.b.finish();
  ASSERT_TRUE(lacks_forms(cuda));
  const Result<Graph> g = with_forms(cuda);
  ASSERT_TRUE(g.ok()) << g.error().message();
  EXPECT_FALSE(lacks_forms(*g));
  EXPECT_EQ(names(*g), names(cuda));  // what CUDA ran stays
  const TensorId filled = g->outputs(g->ops()[0])[3];
  const int64_t sequence = 4 * 10 * 8 * 4;
  EXPECT_EQ(g->bytes_of(filled).value, 6 * sequence + 256);
  EXPECT_EQ(g->storage(g->tensor(filled).storage).bytes.value, 6 * sequence + 256);
  EXPECT_EQ(g->storage(g->tensor(filled).storage).freed_before, OpId(3));
  EXPECT_EQ(g->inputs(g->ops()[2])[1], filled);
}

// cuDNN writes in the query's layout, flash attention with the heads inside: with a query that lies time first, as in
// nn.MultiheadAttention, what was a view becomes a copy, and the other way round.
TEST(CudaForms, FollowTheLayoutOfAttention) {
  const Shape q = {2, 4, 50, 64};
  const Shape time_first = {4 * 64, 64, 2 * 4 * 64, 1};
  const auto recorded = [&](const Shape& strides, bool copied) {
    Recording r;
    const TensorId x = r.tensor(q, DType::bfloat16, strides);
    r.op("aten.mm.default", {}, {x});
    const TensorId out = r.tensor(q, DType::bfloat16, strides);
    r.op("forerun.attention.default", {x, x, x}, {out, r.tensor({2, 4, 50})});
    const auto view = [&](TensorId of, const Shape& sizes, const Shape& s) {
      return r.b.add_tensor(r.storage_of(of), DType::bfloat16, sizes, s);
    };
    TensorId last;
    if (copied) {  // out.transpose(1, 2).reshape(2, 50, 256) of a contiguous result
      const TensorId turned = view(out, {2, 50, 4, 64}, {strides[0], strides[2], strides[1], 1});
      r.op("aten.transpose.int", {out}, {turned}, {{"dim0", int64_t{1}}, {"dim1", int64_t{2}}});
      const TensorId copy = r.tensor({2, 50, 4, 64}, DType::bfloat16);
      r.op("aten.clone.default", {turned}, {copy}, {{"memory_format", std::string("contiguous_format")}});
      last = view(copy, {2, 50, 256}, {12800, 256, 1});
      r.op("aten._unsafe_view.default", {copy}, {last}, {{"size", Shape{2, 50, 256}}});
    } else {  // out.permute(2, 0, 1, 3).view(100, 256) of one that lies time first
      const TensorId turned = view(out, {50, 2, 4, 64}, contiguous_strides({50, 2, 4, 64}));
      r.op("aten.permute.default", {out}, {turned}, {{"dims", Shape{2, 0, 1, 3}}});
      last = view(turned, {100, 256}, {256, 1});
      r.op("aten.view.default", {turned}, {last}, {{"size", Shape{100, 256}}});
    }
    r.op("aten.relu.default", {last}, {r.tensor({100, 256}, DType::bfloat16)});
    return r.b.finish();
  };
  const std::string flash = "aten._scaled_dot_product_flash_attention.default";
  const std::string cudnn = "aten._scaled_dot_product_cudnn_attention.default";
  const DispatchTarget ampere = {.cudnn_attention = false};
  const Graph viewed = recorded(time_first, false);
  EXPECT_EQ(names(*to_cuda_forms(viewed, {})),
            (Names{"aten.mm.default", cudnn, "aten.permute.default", "aten.view.default", "aten.relu.default"}));
  const Result<Graph> copies = to_cuda_forms(viewed, ampere);
  ASSERT_TRUE(copies.ok()) << copies.error().message();
  EXPECT_EQ(names(*copies), (Names{"aten.mm.default", flash, "aten.permute.default", "aten.clone.default",
                                   "aten._unsafe_view.default", "aten.relu.default"}));
  const TensorId copy = copies->inputs(copies->ops()[5])[0];
  EXPECT_NE(copies->tensor(copy).storage, copies->tensor(copies->outputs(copies->ops()[1])[0]).storage);
  EXPECT_EQ(copies->storage(copies->tensor(copy).storage).freed_before, OpId(6));  // when its last reader is done

  const Graph copied = recorded(contiguous_strides(q), true);
  EXPECT_EQ(names(*to_cuda_forms(copied, {}))[3], "aten.clone.default");
  const Result<Graph> views = to_cuda_forms(copied, ampere);
  ASSERT_TRUE(views.ok()) << views.error().message();
  EXPECT_EQ(names(*views),
            (Names{"aten.mm.default", flash, "aten.transpose.int", "aten.view.default", "aten.relu.default"}));
  EXPECT_EQ(views->tensor(views->inputs(views->ops()[4])[0]).storage,
            views->tensor(views->outputs(views->ops()[1])[0]).storage);
}

// --- records that nobody's capture wrote

std::string complaint(Recording& r) {
  const Result<Graph> g = r.mapped();
  return g.ok() ? "ok" : g.error().message();
}

TEST(CudaForms, TellWhatIsWrongWithARecord) {
  Recording arity;
  arity.op("forerun.attention.default", {arity.tensor({2, 2, 4, 8})}, {arity.tensor({2, 2, 4, 8})});
  EXPECT_EQ(complaint(arity),
            "op 0 (forerun.attention.default): 1 inputs, expected 3 or 4; capture the model again with "
            "forerun.capture");
  Recording orphan;
  orphan.backward("forerun.rnn_backward.default", {orphan.tensor({2})}, {});
  EXPECT_NE(complaint(orphan).find("no forward op made what it reads last"), std::string::npos);
  Recording mode;
  mode.op("forerun.rnn.default", {mode.tensor({2})}, {mode.tensor({2})}, {{"mode", "elman"}});
  EXPECT_NE(complaint(mode).find("known: lstm, gru, tanh, relu"), std::string::npos);
  Recording outputs;
  const TensorId q = outputs.tensor({2, 2, 4, 8});
  outputs.op("forerun.attention.default", {q, q, q}, {outputs.tensor({2, 2, 4, 8})});
  EXPECT_NE(complaint(outputs).find("1 outputs, expected 2"), std::string::npos);
  Recording again;
  const TensorId x = again.tensor({2, 2, 4, 8});
  again.op("forerun.attention.default", {x, x, x}, {x, again.tensor({2, 2, 4})});
  EXPECT_NE(complaint(again).find("a storage that exists already"), std::string::npos);
}

// Mutated records: an op loses, gains or swaps an operand, or has its attributes taken. Mapping gives a graph that
// verifies, or an Error; never a crash.
TEST(CudaForms, SurviveMutatedRecords) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    Graph whole;
    switch (round % 4) {
      case 0: whole = BatchNormRecording({4, 8, 5, 5}).b.finish(); break;
      case 1:
        whole = AttentionRecording({.key_heads = round % 8 < 4 ? 4 : 2, .mask = round % 3 == 0}).b.finish();
        break;
      case 2: whole = RnnRecording({}).b.finish(); break;
      default: whole = RnnRecording({.mode = "gru", .given = {true, true}}).b.finish(); break;
    }
    GraphBuilder b;
    for (const Storage& storage : whole.storages()) {
      const StorageId id = b.add_storage(storage.bytes);
      if (storage.root != Root::none) b.mark_root(id, storage.root, "root");
    }
    std::vector<TensorId> tensors;
    for (size_t i = 0; i < whole.tensors().size(); ++i) {
      const Tensor& t = whole.tensors()[i];
      tensors.push_back(b.add_tensor(t.storage, t.dtype, whole.shape(TensorId(i)), whole.strides(TensorId(i))));
    }
    const size_t victim = below(whole.op_count());
    for (size_t i = 0; i < whole.op_count(); ++i) {
      const Op& op = whole.ops()[i];
      std::vector<TensorId> in(whole.inputs(op).begin(), whole.inputs(op).end());
      std::vector<TensorId> out(whole.outputs(op).begin(), whole.outputs(op).end());
      Attributes attributes = whole.attributes(op);
      if (i == victim || random() % 8 == 0) {
        std::vector<TensorId>& side = random() % 2 == 0 ? in : out;
        switch (random() % 5) {
          case 0:
            if (!side.empty()) side.erase(side.begin() + static_cast<int64_t>(below(side.size())));
            break;
          case 1: side.push_back(tensors[below(tensors.size())]); break;
          case 2:
            if (!side.empty()) side[below(side.size())] = tensors[below(tensors.size())];
            break;
          case 3: attributes = {}; break;
          default: attributes = whole.attributes(whole.ops()[below(whole.op_count())]); break;
        }
      }
      b.add_op({.name = whole.name(op),
                .phase = op.phase,
                .inputs = in,
                .outputs = out,
                .attributes = &attributes,
                .sequence = op.sequence,
                .autograd_node = whole.names()[op.autograd_node]});
    }
    const Graph mutated = b.finish();
    if (!verify(mutated).ok()) continue;
    const Result<Graph> g = to_cuda_forms(mutated, {});
    if (!g.ok()) {
      ++refused;
      EXPECT_FALSE(g.error().what.empty());
    } else {
      EXPECT_TRUE(verify(*g).ok());
    }
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace forerun::derive
