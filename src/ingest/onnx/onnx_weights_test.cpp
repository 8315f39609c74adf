// Which tensors of a file are parameters: initializers and Constant nodes by one rule, also through other ops.
#include <gtest/gtest.h>

#include "graph/graph.h"
#include "ingest/onnx/onnx_test_model.h"

namespace forerun::ingest {
namespace {

using Names = std::vector<std::string>;

enum class Keep { initializers, inputs_too, constants };

// conv - bn - relu - conv with a reshaped bias - pool - linear - norm, with weights kept in one way.
OnnxTestModel network(Keep keep) {
  OnnxTestModel m(keep == Keep::inputs_too ? 8 : 12);
  m.input("x", {"N", 3, 8, 8});
  const auto weight = [&](const std::string& name, const Shape& dims) {
    if (keep == Keep::constants) return m.constant_weight(name, dims);
    m.weight(name, dims);
    if (keep == Keep::inputs_too) m.input(name, {dims.begin(), dims.end()});
  };
  weight("conv.weight", {16, 3, 3, 3});
  for (const char* name : {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}) weight(name, {16});
  m.ints("to_channels", {1, 8, 1, 1});
  m.ints("rows", {0, -1});
  m.node("Conv", {"x", "conv.weight"}, {"c"}, {{"pads", Shape{1, 1, 1, 1}}});
  m.node("BatchNormalization", {"c", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, {"n"});
  m.node("Relu", {"n"}, {"r"});
  weight("conv2.weight", {8, 16, 1, 1});
  m.node("Conv", {"r", "conv2.weight"}, {"c2"});
  weight("conv2.bias", {8});
  m.node("Reshape", {"conv2.bias", "to_channels"}, {"b2"});
  m.node("Add", {"c2", "b2"}, {"s"});
  m.node("GlobalAveragePool", {"s"}, {"p"});
  m.node("Reshape", {"p", "rows"}, {"f"});
  weight("head.weight", {8, 10});
  m.node("MatMul", {"f", "head.weight"}, {"l"});
  weight("head.bias", {10});
  m.node("Add", {"l", "head.bias"}, {"y"});
  m.output("y");
  return m;
}

TEST(OnnxWeights, ConstantNodesAndInputsAreParametersAsInitializersAre) {
  const auto expected = network(Keep::initializers).read({.batch = 2});
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  const int64_t parameters = 16 * 27 + 32 + 8 * 16 + 8 + 80 + 10;
  EXPECT_EQ(expected->forward.parameter_count(), parameters);
  EXPECT_EQ(op_names(expected->forward).back(), "aten.linear.default");  // with its bias
  for (const Keep keep : {Keep::constants, Keep::inputs_too}) {
    SCOPED_TRACE(static_cast<int>(keep));
    const auto model = network(keep).read({.batch = 2});
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(model->forward.parameter_count(), parameters);
    EXPECT_EQ(model->forward.parameter_tensors(), expected->forward.parameter_tensors());
    EXPECT_EQ(op_names(model->forward), op_names(expected->forward));
    EXPECT_EQ(model->forward.module(model->forward.ops()[0]), "conv");
    EXPECT_EQ(model->input.kind, InputKind::image);
    EXPECT_TRUE(check_trainable(*model).ok());
    EXPECT_TRUE(verify(model->forward).ok()) << verify(model->forward).error().message();
  }
}

TEST(OnnxWeights, ConstantsReachTheirLayerThroughOtherOps) {
  OnnxTestModel m(12);
  m.input("x", {2, 3, 8, 8});
  m.constant_weight("a", {16, 27});
  m.ints("kernel", {16, 3, 3, 3});
  m.node("Identity", {"a"}, {"a1"});
  m.node("Reshape", {"a1", "kernel"}, {"a2"});
  m.node("Cast", {"a2"}, {"a3"}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  m.node("Conv", {"x", "a3"}, {"c"});
  m.node("GlobalAveragePool", {"c"}, {"g"});
  m.node("Flatten", {"g"}, {"f"});
  m.constant_weight("b", {10, 16});
  m.node("Transpose", {"b"}, {"bt"}, {{"perm", Shape{1, 0}}});
  m.node("MatMul", {"f", "bt"}, {"l"});
  m.constant_floats("norm.weight", std::vector<float>(10, 1.0f));
  m.node("LayerNormalization", {"l", "norm.weight"}, {"y"});
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->forward.parameter_count(), 16 * 27 + 160 + 10);
  const Names names = op_names(model->forward);
  EXPECT_EQ(names[names.size() - 2], "aten.linear.default");
}

TEST(OnnxWeights, EmbeddingsAndRecurrentLayersInConstants) {
  OnnxTestModel m(12);
  m.input("ids", {7, 2}, onnx::TensorProto::INT64);
  m.constant_weight("table", {100, 5});
  m.node("Gather", {"table", "ids"}, {"e"});
  m.constant_weight("W", {1, 24, 5});
  m.constant_weight("R", {1, 24, 6});
  m.constant_weight("B", {1, 48});
  m.node("LSTM", {"e", "W", "R", "B"}, {"y"}, {{"hidden_size", int64_t{6}}});
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->forward.parameter_count(), 500 + 24 * 5 + 24 * 6 + 48);
  EXPECT_EQ(op_names(model->forward)[0], "aten.embedding.default");
}

// With weights as initializers, a Constant that only arithmetic reads is a mask or a grid of the program.
TEST(OnnxWeights, ConstantsOfArithmeticAreBuffersBesideInitializers) {
  OnnxTestModel m(12);
  m.input("x", {2, 4});
  m.weight("w", {4, 4});
  m.constant_weight("mask", {2, 4});
  m.node("MatMul", {"x", "w"}, {"a"});
  m.node("Mul", {"a", "mask"}, {"y"});
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->forward.parameter_count(), 16);
  EXPECT_EQ(op_names(model->forward).back(), "aten.mul.Tensor");
}

TEST(OnnxWeights, OneElementOfArithmeticIsANumber) {
  for (const bool initializer : {false, true}) {
    OnnxTestModel m(12);
    m.input("x", {2, 4});
    m.constant_weight("w", {4, 1});
    m.node("MatMul", {"x", "w"}, {"a"});
    m.constant_weight("bias", {1});  // of a layer with one feature
    m.node("Add", {"a", "bias"}, {"b"});
    if (initializer) {
      onnx::TensorProto* tensor = m.weight("factor", {1});
      tensor->clear_data_location();
      tensor->add_float_data(0.5f);
    } else {
      m.constant_floats("factor", {0.5f});
    }
    m.node("Mul", {"factor", "b"}, {"y"});
    m.output("y");
    const auto model = m.read();
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(model->forward.parameter_count(), 5);
    EXPECT_EQ(op_names(model->forward), (Names{"aten.linear.default", "aten.mul.Tensor"}));
    const Graph& g = model->forward;
    EXPECT_DOUBLE_EQ(g.attributes(g.ops()[1]).get_double("other", 0), 0.5);
  }
}

// Sizes computed in floating point, as exporters of TensorFlow do: Shape - Slice - Cast - Mul - Cast - Resize.
TEST(OnnxWeights, WhatSizesAreComputedFromIsASetting) {
  for (const bool initializer : {false, true}) {
    OnnxTestModel m(13);
    m.input("x", {2, 3, 4, 6});
    if (initializer) {
      onnx::TensorProto* tensor = m.weight("twice", {2});
      tensor->clear_data_location();
      tensor->add_float_data(2.0f);
      tensor->add_float_data(3.0f);
    } else {
      m.constant_floats("twice", {2.0f, 3.0f});
    }
    m.ints("two", {2});
    m.ints("four", {4});
    m.ints("lead", {2, 3});
    m.node("Shape", {"x"}, {"s"});
    m.node("Slice", {"s", "two", "four"}, {"hw"});
    m.node("Cast", {"hw"}, {"f"}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
    m.node("Mul", {"f", "twice"}, {"g"});
    m.node("Cast", {"g"}, {"i"}, {{"to", int64_t{onnx::TensorProto::INT64}}});
    m.node("Concat", {"lead", "i"}, {"sizes"}, {{"axis", int64_t{0}}});
    m.node("Resize", {"x", "", "", "sizes"}, {"y"}, {{"mode", std::string("nearest")}});
    m.output("y");
    const auto model = m.read();
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(model->forward.parameter_count(), 0);
    EXPECT_EQ(result_shape(model->forward), (Shape{2, 3, 8, 18}));
  }
}

// Files stripped of their weights compute them, all the same number.
TEST(OnnxWeights, ConstantOfShapeStandsForStrippedWeights) {
  OnnxTestModel m(9);
  m.input("x", {2, 3, 8, 8});
  m.ints("w.shape", {16, 3, 3, 3});
  m.ints("b.shape", {16});
  m.ints("scale.shape", {16});
  m.node("ConstantOfShape", {"w.shape"}, {"w"});
  m.node("ConstantOfShape", {"b.shape"}, {"b"});
  m.node("ConstantOfShape", {"scale.shape"}, {"scale"});
  m.node("Unsqueeze", {"scale"}, {"scale1"}, {{"axes", Shape{1, 2}}});
  m.node("Conv", {"x", "w", "b"}, {"c"});
  m.node("Mul", {"c", "scale1"}, {"y"});
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->forward.parameter_count(), 16 * 27 + 16 + 16);

  OnnxTestModel zeros(9);  // torch.zeros beside a real weight
  zeros.input("x", {2, 4});
  zeros.weight("w", {4, 4});
  zeros.ints("shape", {2, 4});
  zeros.node("ConstantOfShape", {"shape"}, {"z"});
  zeros.node("MatMul", {"x", "w"}, {"a"});
  zeros.node("Add", {"z", "a"}, {"y"});
  zeros.output("y");
  const auto beside = zeros.read();
  ASSERT_TRUE(beside.ok()) << beside.error().message();
  EXPECT_EQ(beside->forward.parameter_count(), 16);
}

TEST(OnnxWeights, SaysWhereTheWeightsAreWhereThereAreNone) {
  const auto message = [](const std::string& type) {
    OnnxTestModel m;
    m.input("x", {2, 4});
    m.node(type, {"x"}, {"y"});
    m.output("y");
    const auto model = m.read();
    EXPECT_TRUE(model.ok()) << model.error().message();
    const Status trainable = check_trainable(*model);
    return trainable.ok() ? "" : trainable.error().message();
  };
  EXPECT_NE(message("If").find("without control flow"), std::string::npos);
  EXPECT_NE(message("MatMulInteger").find("quantized"), std::string::npos);
  EXPECT_NE(message("Relu").find("initializers or Constant nodes"), std::string::npos);
}

}  // namespace
}  // namespace forerun::ingest
