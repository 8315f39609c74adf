// Single ops: their forms in different opsets, and the shapes they give.
#include <gtest/gtest.h>

#include "graph/graph.h"
#include "ingest/onnx/onnx_test_model.h"

namespace forerun::ingest {
namespace {

using Names = std::vector<std::string>;
using Attributes = std::vector<std::pair<std::string, TestAttribute>>;

TEST(OnnxRules, FormsOfEachOpset) {
  const int64_t one = 1;
  const int64_t zero = 0;
  const std::vector<TestForm> forms = {
      {11, "Squeeze", {2, 1, 3}, {}, {{"axes", Shape{1}}}, {2, 3}, {"aten.squeeze.dim"}},
      {13, "Squeeze", {2, 1, 3}, {{-2}}, {}, {2, 3}, {"aten.squeeze.dim"}},
      {13, "Squeeze", {1, 2, 1}, {}, {}, {2}, {"aten.squeeze.dim", "aten.squeeze.dim"}},
      {11,
       "Unsqueeze",
       {2, 3},
       {},
       {{"axes", Shape{0, 3}}},
       {1, 2, 3, 1},
       {"aten.unsqueeze.default", "aten.unsqueeze.default"}},
      {13, "Unsqueeze", {2, 3}, {{-1}}, {}, {2, 3, 1}, {"aten.unsqueeze.default"}},
      {11, "ReduceSum", {2, 3}, {}, {{"axes", Shape{1}}, {"keepdims", zero}}, {2}, {"aten.sum.dim_IntList"}},
      {13, "ReduceSum", {2, 3}, {{-1}}, {{"keepdims", one}}, {2, 1}, {"aten.sum.dim_IntList"}},
      {13, "ReduceSum", {2, 3}, {}, {{"noop_with_empty_axes", one}}, {2, 3}, {}},
      {17, "ReduceMean", {2, 3, 4}, {}, {{"axes", Shape{-1}}}, {2, 3, 1}, {"aten.mean.dim"}},
      {18, "ReduceMean", {2, 3, 4}, {{1, 2}}, {{"keepdims", zero}}, {2}, {"aten.mean.dim"}},
      {18, "ReduceMax", {2, 3, 4}, {}, {}, {1, 1, 1}, {"aten.amax.default"}},
      {12,
       "Softmax",
       {2, 3, 4},
       {},
       {},
       {2, 3, 4},
       {"aten.flatten.using_ints", "aten.softmax.int", "aten.reshape.default"}},
      {13, "Softmax", {2, 3, 4}, {}, {}, {2, 3, 4}, {"aten.softmax.int"}},
      {11, "LogSoftmax", {2, 3}, {}, {{"axis", int64_t{-1}}}, {2, 3}, {"aten.log_softmax.int"}},
      {11, "Flatten", {2, 3, 4}, {}, {{"axis", int64_t{2}}}, {6, 4}, {"aten.reshape.default"}},
      {14, "Reshape", {2, 3, 4}, {{0, -1}}, {}, {2, 12}, {"aten.reshape.default"}},
      {11, "Slice", {10, 8}, {{1}, {9223372036854775807}, {1}, {2}}, {}, {10, 4}, {"aten.slice.Tensor"}},
      {11, "Slice", {10, 8}, {{-3}, {-1}}, {}, {2, 8}, {"aten.slice.Tensor"}},
      {11, "Pad", {1, 2, 4, 4}, {{0, 0, 1, 2, 0, 0, 3, 4}}, {}, {1, 2, 8, 10}, {"aten.constant_pad_nd.default"}},
      {18, "Pad", {1, 2, 4, 4}, {{1, 2}, {}, {3}}, {}, {1, 2, 4, 7}, {"aten.constant_pad_nd.default"}},
      {11, "Expand", {3, 1}, {{2, 1, 4}}, {}, {2, 3, 4}, {"aten.expand.default"}},
      {13,
       "Tile",
       {2, 3},
       {{2, 2}},
       {},
       {4, 6},
       {"aten.reshape.default", "aten.expand.default", "aten.reshape.default"}},
      {11,
       "Resize",
       {1, 2, 4, 4},
       {{}, {}, {1, 2, 8, 6}},
       {{"mode", std::string("linear")}},
       {1, 2, 8, 6},
       {"aten.upsample_bilinear2d.default"}},
      {13,
       "AveragePool",
       {1, 2, 9},
       {},
       {{"kernel_shape", Shape{3}}, {"strides", Shape{3}}},
       {1, 2, 3},
       {"aten.unsqueeze.default", "aten.avg_pool2d.default", "aten.squeeze.dim"}},
      {13,
       "MaxPool",
       {1, 2, 7, 7},
       {},
       {{"kernel_shape", Shape{3, 3}}, {"strides", Shape{2, 2}}, {"ceil_mode", one}, {"pads", Shape{0, 0, 1, 1}}},
       {1, 2, 4, 4},
       {"aten.constant_pad_nd.default", "aten.max_pool2d.default"}},
      {13,
       "MaxPool",
       {1, 2, 8, 8, 8},
       {},
       {{"kernel_shape", Shape{2, 2, 2}}, {"strides", Shape{2, 2, 2}}},
       {1, 2, 4, 4, 4},
       {"onnx.MaxPool"}},
      {13, "GlobalAveragePool", {1, 2, 7, 7}, {}, {}, {1, 2, 1, 1}, {"aten.adaptive_avg_pool2d.default"}},
      {13, "ArgMax", {2, 3}, {}, {{"axis", one}, {"keepdims", zero}}, {}, {}},
      {20, "Gelu", {2, 3}, {}, {{"approximate", std::string("tanh")}}, {2, 3}, {"aten.gelu.default"}},
      {13, "Einsum", {2, 3, 3}, {}, {{"equation", std::string("bij->bji")}}, {2, 3, 3}, {"onnx.Einsum"}},
      {13,
       "DepthToSpace",
       {1, 8, 2, 2},
       {},
       {{"blocksize", int64_t{2}}},
       {1, 2, 4, 4},
       {"aten.reshape.default", "aten.permute.default", "aten.reshape.default"}},
  };
  for (const TestForm& form : forms) {
    SCOPED_TRACE(form.type + " of opset " + std::to_string(form.opset));
    const auto model = form.model().read();
    if (form.type == "ArgMax") {  // an integer result: nothing to train on
      ASSERT_FALSE(model.ok());
      EXPECT_NE(model.error().what.find("nothing to train on"), std::string::npos);
      continue;
    }
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(op_names(model->forward), form.ops);
    EXPECT_EQ(result_shape(model->forward), form.out);
  }
}

TEST(OnnxRules, SplitSizesAreAttributeInputOrCount) {
  const auto outputs = [](int64_t opset, bool input, const Attributes& attributes) {
    OnnxTestModel m(opset);
    m.input("x", {2, 7});
    m.ints("sizes", {3, 4});
    m.node("Split", input ? Names{"x", "sizes"} : Names{"x"}, {"a", "b"}, attributes);
    m.output("a");
    m.output("b");
    const auto model = m.read();
    EXPECT_TRUE(model.ok()) << model.error().message();
    return std::pair(result_shape(model->forward, 0), result_shape(model->forward, 1));
  };
  const int64_t one = 1;
  EXPECT_EQ(outputs(11, false, {{"axis", one}, {"split", Shape{3, 4}}}), (std::pair<Shape, Shape>({2, 3}, {2, 4})));
  EXPECT_EQ(outputs(13, true, {{"axis", one}}), (std::pair<Shape, Shape>({2, 3}, {2, 4})));
  EXPECT_EQ(outputs(18, false, {{"axis", one}, {"num_outputs", int64_t{2}}}),
            (std::pair<Shape, Shape>({2, 4}, {2, 3})));
}

TEST(OnnxRules, ClipAndDropoutTakeSettingsAsAttributesOrInputs) {
  for (const int64_t opset : {10, 12}) {
    OnnxTestModel m(opset);
    m.input("x", {2, 3});
    m.scalar("low", 0.0f);
    m.scalar("high", 6.0f);
    m.scalar("ratio", 0.25f);
    if (opset == 10) {
      m.node("Clip", {"x"}, {"c"}, {{"min", 0.0f}, {"max", 6.0f}});
      m.node("Dropout", {"c"}, {"y"}, {{"ratio", 0.25f}});
    } else {
      m.node("Clip", {"x", "low", "high"}, {"c"});
      m.node("Dropout", {"c", "ratio"}, {"y"});
    }
    m.output("y");
    const auto model = m.read();
    ASSERT_TRUE(model.ok()) << model.error().message();
    const Graph& g = model->forward;
    EXPECT_EQ(op_names(g), (Names{"aten.hardtanh.default", "aten.dropout.default"}));
    EXPECT_DOUBLE_EQ(g.attributes(g.ops()[1]).get_double("p", 0), 0.25);
    EXPECT_EQ(g.parameter_count(), 0);
  }
}

TEST(OnnxRules, ConvolutionsOfOneToThreeDimensions) {
  for (const size_t spatial : {1U, 2U, 3U}) {
    OnnxTestModel m;
    Shape in = {2, 4};
    Shape weight = {6, 2};
    Shape transposed = {6, 3};
    in.resize(2 + spatial, 9);
    weight.resize(2 + spatial, 3);
    transposed.resize(2 + spatial, 2);
    m.input("x", {in.begin(), in.end()});
    m.weight("w", weight);
    m.weight("t", transposed);
    m.node("Conv", {"x", "w"}, {"c"},
           {{"group", int64_t{2}}, {"strides", Shape(spatial, 2)}, {"auto_pad", std::string("SAME_UPPER")}});
    m.node("ConvTranspose", {"c", "t"}, {"y"}, {{"strides", Shape(spatial, 2)}});
    m.output("c");
    m.output("y");
    const auto model = m.read();
    ASSERT_TRUE(model.ok()) << model.error().message();
    Shape halved = {2, 6};
    Shape doubled = {2, 3};
    halved.resize(2 + spatial, 5);
    doubled.resize(2 + spatial, 10);
    EXPECT_EQ(result_shape(model->forward, 0), halved);
    EXPECT_EQ(result_shape(model->forward, 1), doubled);
  }
}

TEST(OnnxRules, GemmIsLinearOnlyWhereItsWeightIs) {
  const auto ops = [](const Attributes& attributes, const Shape& weight, const Shape& bias) {
    OnnxTestModel m;
    m.input("x", {4, 8});
    m.weight("w", weight);
    m.weight("b", bias);
    m.node("Gemm", {"x", "w", "b"}, {"y"}, attributes);
    m.output("y");
    const auto model = m.read();
    EXPECT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(result_shape(model->forward), (Shape{4, 5}));
    return op_names(model->forward);
  };
  const int64_t one = 1;
  EXPECT_EQ(ops({{"transB", one}}, {5, 8}, {5}), (Names{"aten.linear.default"}));
  EXPECT_EQ(ops({}, {8, 5}, {5}), (Names{"aten.addmm.default"}));
  EXPECT_EQ(ops({{"transB", one}, {"alpha", 0.5f}}, {5, 8}, {1, 5}),
            (Names{"aten.transpose.int", "aten.matmul.default", "aten.mul.Tensor", "aten.add.Tensor"}));
}

TEST(OnnxRules, SigmoidTimesItsInputIsSilu) {
  OnnxTestModel m;
  m.input("x", {2, 3});
  m.node("Sigmoid", {"x"}, {"s"});
  m.node("Mul", {"x", "s"}, {"a"});
  m.node("Sigmoid", {"a"}, {"gate"});
  m.node("Mul", {"gate", "x"}, {"y"});  // another factor: stays as it is
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(op_names(model->forward), (Names{"aten.silu.default", "aten.sigmoid.default", "aten.mul.Tensor"}));
}

// Exporters that do not fold leave nn.Linear as Transpose, MatMul and Add.
TEST(OnnxRules, TransposedWeightMakesALinearLayer) {
  OnnxTestModel m;
  m.input("x", {2, 7, 8});
  m.weight("fc.weight", {5, 8});
  m.weight("fc.bias", {5});
  m.node("Transpose", {"fc.weight"}, {"t"}, {{"perm", Shape{1, 0}}});
  m.node("MatMul", {"x", "t"}, {"p"});
  m.node("Add", {"p", "fc.bias"}, {"y"});
  m.output("y");
  auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(op_names(model->forward), (Names{"aten.linear.default"}));
  EXPECT_EQ(model->forward.module(model->forward.ops()[0]), "fc");
  EXPECT_EQ(model->forward.parameter_count(), 45);
  m.node("Relu", {"t"}, {"z"});  // read by something else: a tensor like any other
  model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(op_names(model->forward),
            (Names{"aten.transpose.int", "aten.matmul.default", "aten.add.Tensor", "aten.relu.default"}));
}

TEST(OnnxRules, ScalarsBecomeArguments) {
  OnnxTestModel m;
  m.input("x", {2, 3});
  m.scalar("two", 2.0f);
  m.node("Sub", {"two", "x"}, {"a"});
  m.node("Pow", {"a", "two"}, {"b"});
  m.node("Div", {"two", "b"}, {"c"});
  m.node("Greater", {"c", "two"}, {"d"});
  m.node("Where", {"d", "c", "two"}, {"y"});
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  const Graph& g = model->forward;
  EXPECT_EQ(op_names(g), (Names{"aten.rsub.Scalar", "aten.pow.Tensor_Scalar", "aten.reciprocal.default",
                                "aten.mul.Tensor", "aten.gt.Scalar", "aten.where.self"}));
  EXPECT_EQ(g.tensor(g.outputs(g.ops()[4])[0]).dtype, DType::boolean);
  EXPECT_EQ(g.parameter_count(), 0);
}

// Sizes computed with all that exporters use: Slice, Cast, Floor, Concat, Where, ConstantOfShape, Equal, ReduceProd,
// Range.
TEST(OnnxRules, FoldingReachesTheTarget) {
  OnnxTestModel m;
  m.input("x", {"N", 4, 6, 6});
  m.ints("two", {2});
  m.ints("far", {9223372036854775807});
  m.ints("zero1", {0});
  m.ints("minus", {-1});
  m.scalar("half", 0.5f);
  m.node("Shape", {"x"}, {"s"});
  m.node("Slice", {"s", "zero1", "two"}, {"front"});
  m.node("Slice", {"s", "two", "far"}, {"back"});
  m.node("Cast", {"back"}, {"backf"}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  m.node("Mul", {"backf", "half"}, {"halves"});
  m.node("Floor", {"halves"}, {"floors"});
  m.node("Cast", {"floors"}, {"small"}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  m.node("Concat", {"front", "small"}, {"sizes"}, {{"axis", int64_t{0}}});
  m.node("Resize", {"x", "", "", "sizes"}, {"r"});
  m.node("ReduceProd", {"small"}, {"pixels"}, {{"keepdims", int64_t{1}}});
  m.node("Shape", {"sizes"}, {"rank"});
  m.node("ConstantOfShape", {"two"}, {"zeros"});
  m.node("Concat", {"front", "pixels"}, {"flat"}, {{"axis", int64_t{0}}});
  m.node("Equal", {"flat", "minus"}, {"open"});
  m.node("Where", {"open", "minus", "flat"}, {"target"});
  m.node("Reshape", {"r", "target"}, {"y"});
  m.output("y");
  const auto model = m.read({.batch = 5});
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(op_names(model->forward), (Names{"aten.upsample_nearest2d.default", "aten.reshape.default"}));
  EXPECT_EQ(result_shape(model->forward), (Shape{5, 4, 9}));
}

// F.pad as PyTorch's exporter writes it: PyTorch's list, filled up with zeros, reversed pair by pair and transposed.
TEST(OnnxRules, PaddingsOfPyTorchFold) {
  OnnxTestModel m(13);
  m.input("x", {1, 2, 4, 5});
  m.ints("torch", {1, 2, 3, 4});  // left, right, top, bottom
  m.ints("missing", {4});
  m.ints("pairs", {-1, 2});
  m.ints("flat", {-1});
  m.ints("axis", {0});
  m.ints("minus_one", {-1});
  m.ints("lowest", {-9223372036854775807});
  onnx::AttributeProto* zero = m.node("ConstantOfShape", {"missing"}, {"zeros"})->add_attribute();
  zero->set_name("value");
  zero->set_type(onnx::AttributeProto::TENSOR);
  zero->mutable_t()->set_data_type(onnx::TensorProto::INT64);
  zero->mutable_t()->add_dims(1);
  zero->mutable_t()->add_int64_data(0);
  m.node("Concat", {"torch", "zeros"}, {"all"}, {{"axis", int64_t{0}}});
  m.node("Reshape", {"all", "pairs"}, {"p"});
  m.node("Slice", {"p", "minus_one", "lowest", "axis", "minus_one"}, {"r"});
  m.node("Transpose", {"r"}, {"t"}, {{"perm", Shape{1, 0}}});
  m.node("Reshape", {"t", "flat"}, {"f"});
  m.node("Cast", {"f"}, {"pads"}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  m.node("Pad", {"x", "pads"}, {"y"});
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(result_shape(model->forward), (Shape{1, 2, 4 + 3 + 4, 5 + 1 + 2}));
  EXPECT_EQ(op_names(model->forward), Names{"aten.constant_pad_nd.default"});
}

TEST(OnnxRules, ReshapeToAnUnknownTargetIsCarried) {
  OnnxTestModel m;
  m.input("x", {2, 6});
  m.input("target", {2}, onnx::TensorProto::INT64);
  m.node("Reshape", {"x", "target"}, {"y"});
  m.value_info("y", {3, 4});
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->opaque_ops.at("Reshape"), 1);
}

TEST(OnnxRules, PartsOfInitializers) {
  OnnxTestModel m;
  m.input("x", {2, 3});
  m.weight("gamma", {3});
  m.scalar("temperature", 0.5f);  // of rank 0: a constant
  m.ints("position", {0, 1});
  m.weight("unused", {7});
  m.node("Mul", {"x", "gamma"}, {"a"});
  m.node("Mul", {"a", "temperature"}, {"b"});
  m.node("Gather", {"b", "position"}, {"y"});
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->forward.parameter_count(), 3);
  EXPECT_EQ(op_names(model->forward), (Names{"aten.mul.Tensor", "aten.mul.Tensor", "aten.index_select.default"}));
}

}  // namespace
}  // namespace forerun::ingest
