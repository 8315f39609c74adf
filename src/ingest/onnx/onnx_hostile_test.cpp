// Broken and hostile files: one clear Error, no crash, no hang.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "graph/graph.h"
#include "ingest/onnx/message_size.h"
#include "ingest/onnx/onnx_test_model.h"

namespace forerun::ingest {
namespace {

OnnxTestModel sound() {
  OnnxTestModel m;
  m.input("x", {2, 8});
  m.weight("w", {4, 8});
  m.node("Gemm", {"x", "w"}, {"h"}, {{"transB", int64_t{1}}})->set_name("fc");
  m.node("Relu", {"h"}, {"y"});
  m.output("y");
  return m;
}

// The error's text holds every one of these, and the file.
void expect_error(const Result<OnnxModel>& model, const std::vector<std::string>& parts) {
  ASSERT_FALSE(model.ok());
  const std::string message = model.error().message();
  EXPECT_NE(message.find("test.onnx"), std::string::npos) << message;
  EXPECT_FALSE(model.error().remedy.empty()) << message;
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

TEST(OnnxHostile, TheSoundModelIsSound) { ASSERT_TRUE(sound().read().ok()); }

TEST(OnnxHostile, EveryTruncationIsAnError) {
  const std::string bytes = sound().bytes();
  const OnnxTestModel whole = sound();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(read_onnx_bytes(bytes.substr(0, length), "test.onnx").ok()) << length;
  }
  expect_error(read_onnx_bytes(bytes.substr(0, bytes.size() / 2), "test.onnx"),
               {"not a complete ONNX model", "truncated"});
}

TEST(OnnxHostile, OtherFormatsAreNamed) {
  expect_error(read_onnx_bytes("", "test.onnx"), {"empty"});
  expect_error(read_onnx_bytes("PK\x03\x04rest", "test.onnx"), {"zip"});
  expect_error(read_onnx_bytes("{\"a\": 1}", "test.onnx"), {"JSON"});
  expect_error(read_onnx_bytes("\x1f\x8b\x08", "test.onnx"), {"gzip"});
  expect_error(read_onnx_bytes("hello, world", "test.onnx"), {"not a complete ONNX model"});
  expect_error(read_onnx_bytes(std::string_view("\x08\x08", 2), "test.onnx"), {"not a complete ONNX model"});
}

TEST(OnnxHostile, FilesThatCannotBeRead) {
  const auto folder = read_onnx(std::filesystem::temp_directory_path().string());
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().what.find("regular file"), std::string::npos);
  const auto missing = read_onnx("no/such/file.onnx");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find("no/such/file.onnx"), std::string::npos);
}

TEST(OnnxHostile, FileBeyondProtobufsLimit) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "forerun_onnx_hostile_large.onnx";
  std::ofstream(path).put('\x08');
  std::filesystem::resize_file(path, uintmax_t{1} << 32);  // sparse
  const auto model = read_onnx(path.string());
  std::filesystem::remove(path);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().what.find("2 GiB"), std::string::npos) << model.error().message();
}

TEST(OnnxHostile, CyclesNameANodeOnThem) {
  OnnxTestModel m = sound();
  m.node("Add", {"h", "loop3"}, {"loop1"})->set_name("first");
  m.node("Relu", {"loop1"}, {"loop2"})->set_name("second");
  m.node("Relu", {"loop2"}, {"loop3"})->set_name("third");
  m.node("Relu", {"loop3"}, {"tail"})->set_name("downstream");
  const auto model = m.read();
  expect_error(model, {"cycle"});
  const std::string where = model.error().where;
  EXPECT_TRUE(where.find("'first'") != std::string::npos || where.find("'second'") != std::string::npos ||
              where.find("'third'") != std::string::npos)
      << where;
  OnnxTestModel self = sound();
  self.node("Add", {"h", "me"}, {"me"})->set_name("selfish");
  expect_error(self.read(), {"cycle", "node 2 'selfish' (Add)"});
}

TEST(OnnxHostile, ValuesNobodyMakesAndValuesMadeTwice) {
  OnnxTestModel missing = sound();
  missing.node("Add", {"h", "ghost"}, {"z"})->set_name("adder");
  expect_error(missing.read(), {"'ghost'", "node 2 'adder' (Add)"});
  OnnxTestModel output = sound();
  output.output("ghost");
  expect_error(output.read(), {"'ghost'", "outputs"});
  OnnxTestModel twice = sound();
  twice.node("Relu", {"x"}, {"h"});
  expect_error(twice.read(), {"'h'", "twice", "node 2 (Relu)"});
  OnnxTestModel weight = sound();
  weight.weight("w", {1});
  expect_error(weight.read(), {"'w'", "twice"});
  OnnxTestModel input = sound();
  input.input("x", {1});
  expect_error(input.read(), {"'x'", "twice"});
}

TEST(OnnxHostile, ImpossibleExtents) {
  for (const int64_t extent : {int64_t{-3}, int64_t{1} << 62, std::numeric_limits<int64_t>::min()}) {
    OnnxTestModel m;
    m.input("x", {2, extent});
    m.node("Relu", {"x"}, {"y"});
    m.output("y");
    expect_error(m.read(), {"'x'", std::to_string(extent)});
    OnnxTestModel w = sound();
    w.weight("big", {4, extent});
    expect_error(w.read(), {"'big'", "impossible shape"});
  }
  OnnxTestModel product;  // each extent is possible, together they are not
  product.input("x", {int64_t{1} << 30, int64_t{1} << 30});
  product.node("Relu", {"x"}, {"y"});
  product.output("y");
  expect_error(product.read(), {"'x'", "not possible"});
  OnnxTestModel grown;
  grown.input("x", {1 << 20, 1});
  grown.ints("to", {1 << 20, 1 << 30});
  grown.node("Expand", {"x", "to"}, {"y"});
  grown.output("y");
  expect_error(grown.read(), {"node 0 (Expand)"});
}

TEST(OnnxHostile, NanAttributes) {
  OnnxTestModel m = sound();
  m.node("LeakyRelu", {"h"}, {"z"}, {{"alpha", std::nanf("")}})->set_name("leaky");
  expect_error(m.read(), {"NaN", "'alpha'", "'leaky' (LeakyRelu)"});
}

TEST(OnnxHostile, AttributesOutOfRange) {
  const Shape far = {int64_t{1} << 62, int64_t{1} << 62};
  const Shape far4 = {1, 1, int64_t{1} << 62, 1};
  const std::vector<std::pair<std::string, std::pair<std::string, TestAttribute>>> attacks = {
      {"Conv", {"strides", Shape{0, 1}}},
      {"Conv", {"strides", far}},
      {"Conv", {"dilations", far}},
      {"Conv", {"pads", far4}},
      {"Conv", {"pads", Shape{-1, 0, 0, 0}}},
      {"Conv", {"pads", Shape{1}}},
      {"Conv", {"group", int64_t{0}}},
      {"Conv", {"group", std::numeric_limits<int64_t>::max()}},
      {"ConvTranspose", {"strides", far}},
      {"ConvTranspose", {"output_padding", far}},
      {"MaxPool", {"kernel_shape", far}},
      {"MaxPool", {"kernel_shape", Shape{}}},
      {"Softmax", {"axis", int64_t{9}}},
      {"Concat", {"axis", std::numeric_limits<int64_t>::min()}},
      {"Transpose", {"perm", Shape{0, 0, 1, 2}}},
      {"Transpose", {"perm", Shape{7, 1, 2, 3}}},
      {"Flatten", {"axis", int64_t{-9}}},
      {"DepthToSpace", {"blocksize", std::numeric_limits<int64_t>::max()}},
  };
  for (const auto& [type, attribute] : attacks) {
    SCOPED_TRACE(type + " " + attribute.first);
    OnnxTestModel m;
    m.input("x", {1, 4, 8, 8});
    m.weight("w", {4, 4, 3, 3});
    const bool conv = type.starts_with("Conv");
    m.node(type, conv ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"}, {"y"}, {attribute});
    m.output("y");
    expect_error(m.read(), {"node 0 (" + type + ")"});
  }
}

TEST(OnnxHostile, ListsOutOfRange) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const std::vector<std::pair<std::string, Shape>> attacks = {
      {"Reshape", {-1, -1}},
      {"Reshape", {3, 5}},
      {"Reshape", {kLeast, 2}},
      {"Expand", {kMost, 1, 1}},
      {"Tile", {kMost, kMost}},
      {"Tile", {-1, 1}},
      {"Pad", {kMost, 0, kMost, 0}},
      {"Pad", {kLeast, 0, 0, 0}},
      {"Pad", {1}},
      {"Squeeze", {0}},
      {"Unsqueeze", {kMost}},
      {"Unsqueeze", {0, 0}},
      {"ReduceSum", {kLeast}},
      {"Split", {kMost, kMost}},
      {"Gather", {}},
  };
  for (const auto& [type, list] : attacks) {
    SCOPED_TRACE(type);
    OnnxTestModel m(18);
    m.input("x", {2, 6});
    m.ints("list", list);
    m.scalar("far", kMost);
    m.node(type, {"x", type == "Gather" ? "far" : "list"}, {"y"});
    m.output("y");
    expect_error(m.read(), {"node 0 (" + type + ")"});
  }
}

TEST(OnnxHostile, DataThatDoesNotFitTheShape) {
  OnnxTestModel raw = sound();
  onnx::TensorProto* tensor = raw.weight("bad", {3});
  tensor->clear_data_location();
  tensor->set_raw_data("1234567");
  expect_error(raw.read(), {"'bad'", "7 bytes, not 12"});
  OnnxTestModel list = sound();
  tensor = list.weight("bad", {3});
  tensor->clear_data_location();
  tensor->add_float_data(1);
  expect_error(list.read(), {"'bad'", "1 elements, not 3"});
  OnnxTestModel type = sound();
  type.weight("bad", {3})->set_data_type(99);
  expect_error(type.read(), {"'bad'", "element type 99"});
  OnnxTestModel constant = sound();
  onnx::AttributeProto* value = constant.node("Constant", {}, {"c"})->add_attribute();
  value->set_name("value");
  value->mutable_t()->set_data_type(onnx::TensorProto::INT64);
  value->mutable_t()->add_dims(2);
  value->mutable_t()->set_raw_data("12345678");
  expect_error(constant.read(), {"node 2 (Constant)", "8 bytes, not 16"});
}

TEST(OnnxHostile, ExternalDataIsNotOpened) {
  OnnxTestModel m = sound();
  auto* entry = m.weight("elsewhere", {1000, 1000})->add_external_data();
  entry->set_key("location");
  entry->set_value("../../../no/such/file");
  m.output("elsewhere");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->forward.parameter_count(), 1000 * 1000 + 32);
}

TEST(OnnxHostile, NothingInNothingOut) {
  OnnxTestModel no_inputs;
  no_inputs.node("Constant", {}, {"y"}, {{"value_float", 1.0f}});
  no_inputs.output("y");
  expect_error(no_inputs.read(), {"no inputs"});
  OnnxTestModel no_outputs = sound();
  no_outputs.proto.mutable_graph()->clear_output();
  expect_error(no_outputs.read(), {"no outputs"});
  OnnxTestModel no_opset = sound();
  no_opset.proto.clear_opset_import();
  expect_error(no_opset.read(), {"version of the ONNX operators"});
  OnnxTestModel wrong_opset(-3);
  wrong_opset.input("x", {1});
  wrong_opset.output("x");
  expect_error(wrong_opset.read(), {"version of the ONNX operators"});
  OnnxTestModel no_type = sound();
  no_type.node("", {"h"}, {"z"});
  expect_error(no_type.read(), {"node 2"});
  OnnxTestModel no_shape = sound();
  no_shape.proto.mutable_graph()->add_input()->set_name("shapeless");
  expect_error(no_shape.read(), {"'shapeless'"});
}

TEST(OnnxHostile, MissingOperandsOfEveryOp) {
  for (const char* type : {"Conv",
                           "ConvTranspose",
                           "Gemm",
                           "MatMul",
                           "BatchNormalization",
                           "LayerNormalization",
                           "LSTM",
                           "GRU",
                           "RNN",
                           "InstanceNormalization",
                           "GroupNormalization",
                           "Where",
                           "Concat",
                           "Split",
                           "Slice",
                           "Gather",
                           "GatherElements",
                           "Expand",
                           "Tile",
                           "Pad",
                           "Resize",
                           "Upsample",
                           "TopK",
                           "CumSum",
                           "Trilu",
                           "Range",
                           "Reshape",
                           "Squeeze",
                           "Unsqueeze",
                           "Pow",
                           "Clip",
                           "Einsum",
                           "ReduceMean",
                           "ArgMax",
                           "Dropout",
                           "ConstantOfShape",
                           "Constant",
                           "Shape",
                           "Size",
                           "Cast",
                           "CastLike",
                           "Sum",
                           "Max",
                           "Mean",
                           "PRelu",
                           "Identity",
                           "Softmax",
                           "MaxPool",
                           "GlobalMaxPool",
                           "Flatten",
                           "Transpose",
                           "DepthToSpace"}) {
    for (const int given : {0, 1, 2}) {
      SCOPED_TRACE(std::string(type) + " with " + std::to_string(given));
      OnnxTestModel m;
      m.input("x", {2, 3});
      m.scalar("s", int64_t{1});
      std::vector<std::string> inputs;
      if (given == 1) inputs = {"s"};
      if (given == 2) inputs = {"x", "", "", "", ""};
      m.node(type, inputs, {"y"});
      m.node(type, inputs, {});
      m.output("x");
      const auto model = m.read();  // either is fine, a crash is not
      if (!model) {
        EXPECT_FALSE(model.error().remedy.empty()) << model.error().message();
      }
    }
  }
}

TEST(OnnxHostile, DeepNestingOfSubgraphs) {
  OnnxTestModel m = sound();
  onnx::NodeProto* node = m.node("If", {"h"}, {"z"});
  for (int depth = 0; depth < 2000; ++depth) node = node->add_attribute()->mutable_g()->add_node();
  expect_error(m.read(), {"cannot be parsed"});
}

TEST(OnnxHostile, GrowingRank) {
  OnnxTestModel m(13);
  m.input("x", {2});
  m.ints("axis", {0});
  std::string last = "x";
  for (int i = 0; i < 100000; ++i) {
    const std::string next = "v" + std::to_string(i);
    m.node("Unsqueeze", {last, "axis"}, {next});
    last = next;
  }
  m.output(last);
  expect_error(m.read(), {"Unsqueeze", "rank"});
}

std::string chain(int length, bool backwards) {
  OnnxTestModel m;
  m.input("v0", {4, 4});
  for (int i = 0; i < length; ++i) {
    const int at = backwards ? length - 1 - i : i;
    m.node("Relu", {"v" + std::to_string(at)}, {"v" + std::to_string(at + 1)});
  }
  m.output("v" + std::to_string(length));
  return m.bytes();
}

TEST(OnnxHostile, MillionNodeChain) {
  constexpr int kLength = 1'000'000;
  const auto model = read_onnx_bytes(chain(kLength, false), "test.onnx");
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->forward.op_count(), size_t{kLength});
}

TEST(OnnxHostile, ChainInReverseOrder) {
  const auto model = read_onnx_bytes(chain(100'000, true), "test.onnx");
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_EQ(model->forward.op_count(), 100'000U);
}

// Two bytes of file for each empty node: refused before protobuf allocates for them.
TEST(OnnxHostile, EmptyNodesByTheMillion) {
  std::string bytes(2'000'000, '\0');
  for (size_t i = 0; i < bytes.size(); i += 2) bytes[i] = '\x0a';  // a node of no bytes
  onnx::ModelProto model;
  ASSERT_TRUE(model.mutable_graph()->ParseFromString(bytes));
  ASSERT_EQ(model.graph().node_size(), 1'000'000);
  const Status refused = check_message_size(model.SerializeAsString(), 999'999);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().what.find("more than the 999999"), std::string::npos) << refused.error().message();
  EXPECT_TRUE(check_message_size(model.SerializeAsString(), 1'000'001).ok());
  EXPECT_TRUE(check_message_size(sound().bytes()).ok());
}

TEST(OnnxHostile, NamesThatCannotBePrinted) {
  OnnxTestModel m;
  const std::string ugly = "a\xff\n\x01" + std::string(100'000, 'z');
  m.input("x", {2, 3});
  m.weight(ugly + ".weight", {3});
  m.node(ugly, {"x", ugly + ".weight"}, {"y"})->set_name(ugly);
  m.output("y");
  const auto model = m.read();
  ASSERT_TRUE(model.ok()) << model.error().message();
  for (const auto& [name, count] : model->opaque_ops) {
    EXPECT_LT(name.size(), 200U);
    EXPECT_EQ(name.substr(0, 4), "a???");
  }
  m.node("Softmax", {"y"}, {ugly}, {{"axis", int64_t{5}}})->set_name(ugly);
  const auto failed = m.read();
  ASSERT_FALSE(failed.ok());
  EXPECT_LT(failed.error().message().size(), 1000U);
}

// Bytes changed at random: whatever comes out is a model that holds together, or an Error.
TEST(OnnxHostile, RandomDamage) {
  const std::string bytes = sound().bytes();
  std::mt19937 random(7);
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 1 + round % 4; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto model = read_onnx_bytes(damaged, "test.onnx");
    if (model) {
      EXPECT_TRUE(verify(model->forward).ok()) << verify(model->forward).error().message();
    } else {
      EXPECT_FALSE(model.error().message().empty());
    }
  }
}

}  // namespace
}  // namespace forerun::ingest
