// Whole models: what they become, their parameters, shapes and input.
#include "ingest/onnx/onnx_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "graph/graph.h"
#include "ingest/onnx/onnx_test_model.h"

namespace forerun::ingest {
namespace {

using Names = std::vector<std::string>;

// conv - bn - relu - pool - flatten - gemm, with the names PyTorch's exporter gives.
OnnxTestModel small_cnn(const TestDim& batch) {
  OnnxTestModel m;
  m.input("x", {batch, 3, 32, 32});
  m.weight("stem.conv.weight", {16, 3, 3, 3});
  m.weight("stem.bn.weight", {16});
  m.weight("stem.bn.bias", {16});
  m.weight("stem.bn.running_mean", {16});
  m.weight("stem.bn.running_var", {16});
  m.weight("head.weight", {10, 16 * 8 * 8});
  m.weight("head.bias", {10});
  m.node("Conv", {"x", "stem.conv.weight"}, {"c"},
         {{"kernel_shape", Shape{3, 3}}, {"pads", Shape{1, 1, 1, 1}}, {"strides", Shape{2, 2}}});
  m.node("BatchNormalization", {"c", "stem.bn.weight", "stem.bn.bias", "stem.bn.running_mean", "stem.bn.running_var"},
         {"n"}, {{"epsilon", 1e-3f}, {"momentum", 0.9f}});
  m.node("Relu", {"n"}, {"r"})->set_name("/stem/stem.act/Relu");
  m.node("MaxPool", {"r"}, {"p"}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}});
  m.node("Flatten", {"p"}, {"f"});
  m.node("Gemm", {"f", "head.weight", "head.bias"}, {"y"}, {{"transB", int64_t{1}}});
  m.output("y");
  return m;
}

TEST(OnnxReader, ConvolutionalNetworkBecomesPyTorchOps) {
  const auto model = small_cnn("N").read({.batch = 4});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const Graph& g = model->forward;
  EXPECT_EQ(op_names(g),
            (Names{"aten.convolution.default", "aten.add_.Tensor", "aten.batch_norm.default", "aten.relu.default",
                   "aten.max_pool2d.default", "aten.flatten.using_ints", "aten.linear.default"}));
  EXPECT_EQ(g.parameter_count(), 16 * 3 * 9 + 16 + 16 + 10 * 1024 + 10);
  EXPECT_EQ(g.parameter_tensors(), 5);
  EXPECT_EQ(result_shape(g), (Shape{4, 10}));
  EXPECT_EQ(g.module(g.ops()[0]), "stem.conv");
  EXPECT_EQ(g.module(g.ops()[3]), "stem.act");
  EXPECT_EQ(g.module(g.ops()[6]), "head");
  EXPECT_DOUBLE_EQ(g.attributes(g.ops()[2]).get_double("eps", 0), 1e-3);
  EXPECT_NEAR(g.attributes(g.ops()[2]).get_double("momentum", 0), 0.1, 1e-6);
  EXPECT_TRUE(model->opaque_ops.empty());
  EXPECT_EQ(model->opset, 17);
  EXPECT_EQ(model->producer, "forerun-test");
  EXPECT_TRUE(verify(g).ok()) << verify(g).error().message();

  EXPECT_EQ(model->input.kind, InputKind::image);
  EXPECT_EQ(model->input.batch, 4);
  EXPECT_EQ(model->input.channels, 3);
  EXPECT_EQ(model->input.size, 32);
  EXPECT_EQ(model->input.classes, 10);
}

TEST(OnnxReader, EveryOpsetFromSixToTwentyOne) {
  for (int64_t opset = 6; opset <= 21; ++opset) {
    SCOPED_TRACE(opset);
    OnnxTestModel m = small_cnn("N");
    m.proto.mutable_opset_import(0)->set_version(opset);
    const auto model = m.read();
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(model->opset, opset);
    EXPECT_EQ(model->forward.op_count(), 7U);
    EXPECT_EQ(model->forward.parameter_count(), 16 * 3 * 9 + 16 + 16 + 10 * 1024 + 10);
  }
}

// The first two versions of the format had no list of opsets.
TEST(OnnxReader, FilesBeforeOpsetsAreOfTheFirst) {
  OnnxTestModel m = small_cnn("N");
  m.proto.clear_opset_import();
  m.proto.set_ir_version(2);
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->opset, 1);
}

TEST(OnnxReader, BatchIsBoundByOptionAndDefaultsToOne) {
  EXPECT_EQ(result_shape(small_cnn("N").read()->forward), (Shape{1, 10}));
  EXPECT_EQ(result_shape(small_cnn("N").read({.batch = 64})->forward), (Shape{64, 10}));
  EXPECT_EQ(result_shape(small_cnn("N").read({.dims = {{"N", 8}}})->forward), (Shape{8, 10}));
  EXPECT_EQ(result_shape(small_cnn(2).read()->forward), (Shape{2, 10}));
  EXPECT_EQ(result_shape(small_cnn(2).read({.batch = 2})->forward), (Shape{2, 10}));
  const auto fixed = small_cnn(2).read({.batch = 16});
  ASSERT_FALSE(fixed.ok());
  EXPECT_NE(fixed.error().what.find("fixes the batch at 2"), std::string::npos) << fixed.error().message();
  EXPECT_FALSE(small_cnn("N").read({.batch = -1}).ok());
}

TEST(OnnxReader, OtherDynamicDimensionsAreBoundByName) {
  OnnxTestModel m;
  m.input("ids", {"batch", "length"}, onnx::TensorProto::INT64);
  m.weight("wte", {100, 8});
  m.node("Gather", {"wte", "ids"}, {"y"});
  m.output("y");
  const auto unbound = m.read({.batch = 2});
  ASSERT_FALSE(unbound.ok());
  EXPECT_NE(unbound.error().message().find("'length'"), std::string::npos) << unbound.error().message();
  const auto unknown = m.read({.dims = {{"length", 4}, {"lenght", 4}}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().remedy.find("'batch', 'length'"), std::string::npos) << unknown.error().message();
  const auto model = m.read({.batch = 2, .dims = {{"length", 6}}});
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(op_names(model->forward), Names{"aten.embedding.default"});
  EXPECT_EQ(result_shape(model->forward), (Shape{2, 6, 8}));
  EXPECT_EQ(model->input.kind, InputKind::tokens);
  EXPECT_EQ(model->input.size, 6);
  EXPECT_EQ(model->input.batch, 2);
}

// Paddle writes -1 for the batch, and "?" for every other dimension it does not know.
TEST(OnnxReader, UnknownDimensionsOfPaddleHaveNoName) {
  OnnxTestModel m = small_cnn(-1);
  auto* dims = m.proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  dims->mutable_dim(2)->set_dim_param("?");
  dims->mutable_dim(3)->set_dim_param("?");
  const auto unbound = m.read({.batch = 4});
  ASSERT_FALSE(unbound.ok());
  EXPECT_NE(unbound.error().message().find("--set x:2=NUMBER"), std::string::npos) << unbound.error().message();
  const auto model = m.read({.batch = 4, .dims = {{"x:2", 32}, {"x:3", 32}}});
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(result_shape(model->forward), (Shape{4, 10}));
}

// A tensor that nothing reads is no parameter: its gradient would never be computed.
TEST(OnnxReader, UnreadInitializersAreLeftOut) {
  OnnxTestModel m = small_cnn("N");
  m.weight("queue", {1, 1});
  EXPECT_EQ(m.read()->forward.parameter_count(), 16 * 3 * 9 + 16 + 16 + 10 * 1024 + 10);
}

// Self-attention as the exporter writes it: heads are split with sizes computed from Shape.
OnnxTestModel attention_block() {
  OnnxTestModel m;
  m.input("x", {"N", "T", 64});
  for (const char* name : {"q", "k", "v", "o"}) {
    m.weight(std::string("onnx::MatMul_") + name, {64, 64});
    m.weight(std::string("attn.") + name + ".bias", {64});
  }
  m.weight("norm.weight", {64});
  m.weight("norm.bias", {64});
  m.scalar("zero", int64_t{0});
  m.scalar("one", int64_t{1});
  m.ints("heads", {4});
  m.ints("axis0", {0});
  m.scalar("scale", 4.0f);
  m.node("LayerNormalization", {"x", "norm.weight", "norm.bias"}, {"n"}, {{"axis", int64_t{-1}}});
  m.node("Shape", {"n"}, {"s"});
  m.node("Gather", {"s", "zero"}, {"batch"});
  m.node("Gather", {"s", "one"}, {"length"});
  m.node("Unsqueeze", {"batch", "axis0"}, {"batch1"});
  m.node("Unsqueeze", {"length", "axis0"}, {"length1"});
  m.node("Constant", {}, {"width"}, {{"value_int", int64_t{64}}});
  m.node("Constant", {}, {"four"}, {{"value_int", int64_t{4}}});
  m.node("Div", {"width", "four"}, {"per_head"});
  m.node("Unsqueeze", {"per_head", "axis0"}, {"per_head1"});
  m.node("Concat", {"batch1", "length1", "heads", "per_head1"}, {"split"}, {{"axis", int64_t{0}}});
  for (const std::string name : {"q", "k", "v"}) {
    m.node("MatMul", {"n", "onnx::MatMul_" + name}, {name + "0"});
    m.node("Add", {"attn." + name + ".bias", name + "0"}, {name + "1"});
    m.node("Reshape", {name + "1", "split"}, {name + "2"});
    m.node("Transpose", {name + "2"}, {name + "3"}, {{"perm", name == "k" ? Shape{0, 2, 3, 1} : Shape{0, 2, 1, 3}}});
  }
  m.node("MatMul", {"q3", "k3"}, {"scores"});
  m.node("Div", {"scores", "scale"}, {"scaled"});
  m.node("Softmax", {"scaled"}, {"weights"}, {{"axis", int64_t{-1}}});
  m.node("MatMul", {"weights", "v3"}, {"mixed"});
  m.node("Transpose", {"mixed"}, {"back"}, {{"perm", Shape{0, 2, 1, 3}}});
  m.node("Reshape", {"back", "s"}, {"joined"});
  m.node("MatMul", {"joined", "onnx::MatMul_o"}, {"o0"});
  m.node("Add", {"o0", "attn.o.bias"}, {"o1"});
  m.node("Add", {"x", "o1"}, {"y"});
  m.output("y");
  return m;
}

TEST(OnnxReader, ShapeArithmeticFoldsAwayAndProductsBecomeLinear) {
  const auto model = attention_block().read({.batch = 3, .dims = {{"T", 10}}});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const Graph& g = model->forward;
  const Names head = {"aten.linear.default", "aten.reshape.default", "aten.transpose.int"};
  Names expected = {"aten.layer_norm.default"};
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), head.begin(), head.end());
  expected[6] = "aten.permute.default";
  for (const char* name : {"aten.matmul.default", "aten.div.Tensor", "aten.softmax.int", "aten.matmul.default",
                           "aten.transpose.int", "aten.reshape.default", "aten.linear.default", "aten.add.Tensor"}) {
    expected.emplace_back(name);
  }
  EXPECT_EQ(op_names(g), expected);
  EXPECT_EQ(result_shape(g), (Shape{3, 10, 64}));
  EXPECT_EQ(g.parameter_count(), 4 * (64 * 64 + 64) + 2 * 64);
  EXPECT_EQ(g.inputs(g.ops()[1]).size(), 3U);  // x, weight, bias
  EXPECT_EQ(g.module(g.ops()[13]), "");
  EXPECT_DOUBLE_EQ(g.attributes(g.ops()[11]).get_double("other", 0), 4.0);
  EXPECT_TRUE(verify(g).ok()) << verify(g).error().message();
}

OnnxTestModel recurrent(const std::string& type, int64_t gates, bool both) {
  const int64_t directions = both ? 2 : 1;
  OnnxTestModel m;
  m.input("x", {7, "N", 5});
  m.weight("W", {directions, gates * 6, 5});
  m.weight("R", {directions, gates * 6, 6});
  m.weight("B", {directions, 2 * gates * 6});
  m.node(type, {"x", "W", "R", "B"}, {"y", "h"},
         {{"hidden_size", int64_t{6}}, {"direction", std::string(both ? "bidirectional" : "forward")}});
  m.output("y");
  m.output("h");
  return m;
}

TEST(OnnxReader, RecurrentWeightsAreSplitAsPyTorchKeepsThem) {
  const auto model = recurrent("LSTM", 4, true).read({.batch = 3});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const Graph& g = model->forward;
  EXPECT_EQ(g.name(g.ops()[0]), "aten.lstm.input");
  EXPECT_EQ(g.inputs(g.ops()[0]).size(), 9U);
  EXPECT_EQ(g.parameter_tensors(), 8);
  EXPECT_EQ(g.parameter_count(), 2 * (24 * 5 + 24 * 6 + 48));
  EXPECT_EQ(result_shape(g, 0), (Shape{7, 2, 3, 6}));
  EXPECT_EQ(result_shape(g, 1), (Shape{2, 3, 6}));
  EXPECT_EQ(model->input.kind, InputKind::flat);
  EXPECT_EQ(model->input.batch, 3);
  EXPECT_EQ(model->input.channels, 7 * 5);
  EXPECT_TRUE(verify(g).ok()) << verify(g).error().message();

  const auto gru = recurrent("GRU", 3, false).read();
  ASSERT_TRUE(gru.ok()) << gru.error().message();
  EXPECT_EQ(op_names(gru->forward)[0], "aten.gru.input");
  EXPECT_EQ(gru->forward.parameter_count(), 18 * 5 + 18 * 6 + 36);
  EXPECT_EQ(result_shape(gru->forward), (Shape{7, 1, 1, 6}));
  EXPECT_EQ(op_names(recurrent("RNN", 1, false).read()->forward)[0], "aten.rnn_tanh.input");
  EXPECT_FALSE(recurrent("GRU", 4, false).read().ok());
}

TEST(OnnxReader, ComputedRecurrentWeightsAreTakenApart) {
  OnnxTestModel m = recurrent("LSTM", 4, false);
  m.proto.mutable_graph()->mutable_node(0)->set_input(1, "W2");
  m.node("Neg", {"W"}, {"W2"});  // after its user: nodes need not be in order
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  const Names names = op_names(model->forward);
  EXPECT_EQ(names[0], "aten.neg.default");
  EXPECT_EQ(names[1], "aten.select.int");
  EXPECT_EQ(names[2], "aten.lstm.input");
  EXPECT_EQ(model->forward.parameter_count(), 24 * 5 + 24 * 6 + 48);
}

TEST(OnnxReader, UnknownOpsAreNamedCountedAndCarried) {
  OnnxTestModel m;
  m.input("x", {"N", 8});
  m.node("Mystery", {"x"}, {"a"});
  m.node("Mystery", {"a"}, {"b"});
  m.node("Attention", {"b"}, {"c", "d"})->set_domain("com.microsoft");
  m.value_info("c", {"N", 2, 5});
  m.node("Relu", {"c"}, {"y"});
  m.node("If", {"x"}, {"z"})->add_attribute()->mutable_g()->add_node()->set_op_type("Add");
  m.output("y");
  const auto model = m.read({.batch = 3});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const std::map<std::string, int64_t> expected = {{"Mystery", 2}, {"com.microsoft.Attention", 1}, {"If", 1}};
  EXPECT_EQ(model->opaque_ops, expected);
  EXPECT_EQ(op_names(model->forward),
            (Names{"onnx.Mystery", "onnx.Mystery", "onnx.Attention", "aten.relu.default", "onnx.If"}));
  EXPECT_EQ(result_shape(model->forward), (Shape{3, 2, 5}));
}

TEST(OnnxReader, AFaultBehindAGuessedShapeNamesTheGuess) {
  OnnxTestModel m;
  m.input("x", {2, 3});
  m.weight("w", {4, 3, 3, 3});
  m.node("Mystery", {"x"}, {"a"})->set_name("odd");
  m.node("Conv", {"a", "w"}, {"y"});
  m.output("y");
  const auto model = m.read();
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().remedy.find("'odd' (Mystery)"), std::string::npos) << model.error().message();
  m.value_info("a", {2, 3, 8, 8});
  EXPECT_TRUE(m.read().ok());
}

TEST(OnnxReader, SharedWeightsCountOnce) {
  OnnxTestModel m;
  m.input("ids", {2, 4}, onnx::TensorProto::INT64);
  m.weight("wte.weight", {50, 8});
  m.node("Identity", {"wte.weight"}, {"tied"});
  m.node("Gather", {"wte.weight", "ids"}, {"e"});
  m.node("Transpose", {"tied"}, {"t"});
  m.node("MatMul", {"e", "t"}, {"y"});
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->forward.parameter_count(), 400);
  EXPECT_EQ(op_names(model->forward), (Names{"aten.embedding.default", "aten.linear.default"}));
  EXPECT_EQ(model->input.classes, 50);
}

TEST(OnnxReader, ReadsTheExampleFiles) {
  const std::string folder = std::string(FORERUN_SOURCE_DIR) + "/examples/onnx/";
  const auto cnn = read_onnx(folder + "small_cnn.onnx", {.batch = 32});
  ASSERT_TRUE(cnn.ok()) << cnn.error().message();
  EXPECT_EQ(cnn->input.batch, 32);
  EXPECT_EQ(result_shape(cnn->forward), (Shape{32, 10}));
  EXPECT_EQ(cnn->forward.parameter_count(), 16 * 27 + 32 + 32 * 16 * 9 + 64 + 10 * 32 + 10);
  EXPECT_TRUE(cnn->opaque_ops.empty());
  const auto block = read_onnx(folder + "transformer_block.onnx", {.batch = 2, .dims = {{"length", 16}}});
  ASSERT_TRUE(block.ok()) << block.error().message();
  EXPECT_EQ(block->input.kind, InputKind::tokens);
  EXPECT_EQ(result_shape(block->forward), (Shape{2, 16, 1000}));
  EXPECT_EQ(block->forward.parameter_count(),
            1000 * 64 + 4 * (64 * 64 + 64) + 4 * 64 + 64 * 256 + 256 + 256 * 64 + 64 + 64 * 1000);
  EXPECT_TRUE(block->opaque_ops.empty());
}

}  // namespace
}  // namespace forerun::ingest
