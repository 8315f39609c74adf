// Forms that ops had before opset 11: attributes in place of inputs, broadcasting that had to be asked for.
#include <gtest/gtest.h>

#include "graph/graph.h"
#include "ingest/onnx/onnx_test_model.h"

namespace forerun::ingest {
namespace {

using Names = std::vector<std::string>;
using Attributes = std::vector<std::pair<std::string, TestAttribute>>;

TEST(OnnxEarlyOpsets, FormsBeforeOpsetEleven) {
  const std::string nearest = "nearest";
  const int64_t one = 1;
  const std::vector<TestForm> forms = {
      {1,
       "Upsample",
       {1, 2, 4, 4},
       {},
       {{"height_scale", 2.0f}, {"width_scale", 3.0f}, {"mode", nearest}},
       {1, 2, 8, 12},
       {"aten.upsample_nearest2d.default"}},
      {1,
       "Pad",
       {1, 2, 4, 4},
       {},
       {{"paddings", Shape{0, 0, 1, 1, 0, 0, 1, 1}}},
       {1, 2, 6, 6},
       {"aten.constant_pad_nd.default"}},
      {2,
       "Pad",
       {1, 2, 4, 4},
       {},
       {{"pads", Shape{0, 0, 1, 1, 0, 0, 1, 1}}},
       {1, 2, 6, 6},
       {"aten.constant_pad_nd.default"}},
      {1, "Cast", {2, 3}, {}, {{"to", std::string("FLOAT16")}}, {2, 3}, {"aten.to.dtype"}},
      {6, "Cast", {2, 3}, {}, {{"to", int64_t{10}}}, {2, 3}, {"aten.to.dtype"}},
      {1, "Reshape", {2, 3, 4}, {}, {{"shape", Shape{0, -1}}}, {2, 12}, {"aten.reshape.default"}},
      {5, "Reshape", {2, 3, 4}, {{0, -1}}, {}, {2, 12}, {"aten.reshape.default"}},
      {1,
       "Tile",
       {2, 3},
       {{2}, {1}},
       {},
       {2, 6},
       {"aten.reshape.default", "aten.expand.default", "aten.reshape.default"}},
      {6,
       "Tile",
       {2, 3},
       {{2, 2}},
       {},
       {4, 6},
       {"aten.reshape.default", "aten.expand.default", "aten.reshape.default"}},
      {6,
       "Slice",
       {10, 8},
       {},
       {{"starts", Shape{1}}, {"ends", Shape{4}}, {"axes", Shape{1}}},
       {10, 3},
       {"aten.slice.Tensor"}},
      {10, "Slice", {10, 8}, {{1}, {4}, {1}}, {}, {10, 3}, {"aten.slice.Tensor"}},
      {6, "ReduceMean", {2, 3}, {}, {{"axes", Shape{1}}, {"keepdims", one}}, {2, 1}, {"aten.mean.dim"}},
      {6, "Dropout", {2, 3}, {}, {{"is_test", one}, {"ratio", 0.3f}}, {2, 3}, {"aten.dropout.default"}},
      {6, "Clip", {2, 3}, {}, {{"min", 0.0f}, {"max", 6.0f}}, {2, 3}, {"aten.hardtanh.default"}},
  };
  for (const TestForm& form : forms) {
    SCOPED_TRACE(form.type + " of opset " + std::to_string(form.opset));
    const auto model = form.model().read();
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(op_names(model->forward), form.ops);
    EXPECT_EQ(result_shape(model->forward), form.out);
  }
}

TEST(OnnxEarlyOpsets, BroadcastingBeforeOpsetSevenSaysWhereItBegins) {
  const auto read = [](const Shape& b, const Attributes& attributes) {
    OnnxTestModel m(6);
    m.input("x", {2, 3, 4, 4});
    m.weight("b", b);
    m.node("Add", {"x", "b"}, {"y"}, attributes);
    m.output("y");
    return m.read();
  };
  const int64_t one = 1;
  const auto channels = read({3}, {{"broadcast", one}, {"axis", one}});
  ASSERT_TRUE(channels.ok()) << channels.error().message();
  EXPECT_EQ(op_names(channels->forward), (Names{"aten.reshape.default", "aten.add.Tensor"}));
  EXPECT_EQ(result_shape(channels->forward), (Shape{2, 3, 4, 4}));
  EXPECT_EQ(channels->forward.parameter_count(), 3);
  const auto last = read({4, 4}, {{"broadcast", one}});
  ASSERT_TRUE(last.ok()) << last.error().message();
  EXPECT_EQ(op_names(last->forward), Names{"aten.add.Tensor"});
  EXPECT_EQ(op_names(read({4}, {{"broadcast", one}, {"axis", int64_t{3}}})->forward), Names{"aten.add.Tensor"});
  const auto beyond = read({3, 4, 4}, {{"broadcast", one}, {"axis", int64_t{2}}});
  ASSERT_FALSE(beyond.ok());
  EXPECT_NE(beyond.error().what.find("cannot begin at dimension 2"), std::string::npos) << beyond.error().message();
}

TEST(OnnxEarlyOpsets, BatchNormsBeforeOpsetNine) {
  const auto read = [](int64_t opset, const Attributes& attributes) {
    OnnxTestModel m(opset);
    m.input("x", {2, 3, 4, 4});
    for (const char* name : {"w", "b", "mean", "var"}) m.weight(name, {3});
    m.node("BatchNormalization", {"x", "w", "b", "mean", "var"}, {"y"}, attributes);
    m.output("y");
    return m.read();
  };
  const auto tested = read(6, {{"is_test", int64_t{1}}, {"spatial", int64_t{1}}});
  ASSERT_TRUE(tested.ok()) << tested.error().message();
  EXPECT_EQ(tested->forward.parameter_count(), 6);
  const auto elements = read(7, {{"spatial", int64_t{0}}});
  ASSERT_FALSE(elements.ok());
  EXPECT_NE(elements.error().message().find("opset 7"), std::string::npos) << elements.error().message();
}

}  // namespace
}  // namespace forerun::ingest
