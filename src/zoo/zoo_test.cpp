// The registry and the convolutional families: parameter counts are the published ones, settings are read and checked,
// nonsense is answered with an error.
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace forerun::zoo {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

std::string failure(std::string_view name, const Settings& settings) {
  const Result<Model> model = build(name, settings);
  EXPECT_FALSE(model) << name << " was built";
  return model ? "" : model.error().message();
}

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string every_edge(std::string_view operation) {
  std::string cell;
  for (const std::string_view edges : {"0", "01", "012"}) {
    if (!cell.empty()) cell += '+';
    cell += '|';
    for (const char source : edges) cell.append(operation).append({'~', source, '|'});
  }
  return cell;
}

struct Published {
  const char* name;
  int64_t parameters;
  Settings settings = {};
};

// torchvision's documentation of its models; heads that only training uses are counted where `aux` is set.
const Published kPublished[] = {
    {"resnet18", 11689512},
    {"resnet34", 21797672},
    {"resnet50", 25557032},
    {"resnet101", 44549160},
    {"resnet152", 60192808},
    {"resnext50_32x4d", 25028904},
    {"resnext101_32x8d", 88791336},
    {"resnext101_64x4d", 83455272},
    {"wide_resnet50_2", 68883240},
    {"wide_resnet101_2", 126886696},
    {"mnasnet0_5", 2218512},
    {"mnasnet0_75", 3170208},
    {"mnasnet1_0", 4383312},
    {"mnasnet1_3", 6282256},
    {"alexnet", 61100840},
    {"convnext_tiny", 28589128},
    {"convnext_small", 50223688},
    {"convnext_base", 88591464},
    {"convnext_large", 197767336},
    {"efficientnet_b0", 5288548},
    {"efficientnet_b1", 7794184},
    {"efficientnet_b2", 9109994},
    {"efficientnet_b3", 12233232},
    {"efficientnet_b4", 19341616},
    {"efficientnet_b5", 30389784},
    {"efficientnet_b6", 43040704},
    {"efficientnet_b7", 66347960},
    {"vgg11", 132863336},
    {"vgg13", 133047848},
    {"vgg16", 138357544},
    {"vgg19", 143667240},
    {"vgg11_bn", 132868840},
    {"vgg13_bn", 133053736},
    {"vgg16_bn", 138365992},
    {"vgg19_bn", 143678248},
    {"squeezenet1_0", 1248424},
    {"squeezenet1_1", 1235496},
    {"shufflenet_v2_x0_5", 1366792},
    {"shufflenet_v2_x1_0", 2278604},
    {"shufflenet_v2_x1_5", 3503624},
    {"shufflenet_v2_x2_0", 7393996},
    {"densenet121", 7978856},
    {"densenet161", 28681000},
    {"densenet169", 14149480},
    {"densenet201", 20013928},
    {"mobilenet_v2", 3504872},
    {"mobilenet_v3_large", 5483032},
    {"mobilenet_v3_small", 2542856},
    {"regnet_y_400mf", 4344144},
    {"regnet_y_800mf", 6432512},
    {"regnet_y_1_6gf", 11202430},
    {"regnet_y_3_2gf", 19436338},
    {"regnet_y_8gf", 39381472},
    {"regnet_y_16gf", 83590140},
    {"regnet_y_32gf", 145046770},
    {"regnet_x_400mf", 5495976},
    {"regnet_x_800mf", 7259656},
    {"regnet_x_1_6gf", 9190136},
    {"regnet_x_3_2gf", 15296552},
    {"regnet_x_8gf", 39572648},
    {"regnet_x_16gf", 54278536},
    {"regnet_x_32gf", 107811560},
    {"googlenet", 6624904},
    {"googlenet", 13004888, {{"aux", "true"}}},
    {"inception_v3", 23834568},
    {"inception_v3", 27161264, {{"aux", "true"}}},
    {"nas_cell_3x3", 1531546},  // NAS-Bench-201, for CIFAR-10
    {"nas_cell", 73306, {{"cell", every_edge("skip_connect")}}},
};

TEST(ConvolutionalZoo, ParameterCountsAreThePublishedOnes) {
  for (const Published& entry : kPublished) {
    const Result<Model> model = build(entry.name, entry.settings);
    ASSERT_TRUE(model) << entry.name << ": " << model.error().message();
    EXPECT_EQ(model->forward.parameter_count(), entry.parameters) << entry.name;
    const Status sound = verify(model->forward);
    EXPECT_TRUE(sound) << entry.name << ": " << sound.error().message();
  }
}

// Added up by hand, level by level; each class adds one row of the last 1x1 convolution: 64 weights and a bias.
TEST(ConvolutionalZoo, UNetCountsFollowTheFormula) {
  const auto double_conv = [](int64_t in, int64_t out) { return 9 * in * out + 9 * out * out + 4 * out; };
  int64_t expected = double_conv(3, 64);
  for (int64_t width = 64; width < 1024; width *= 2) {
    expected += double_conv(width, 2 * width);                                  // down
    expected += 2 * width * width * 4 + width + double_conv(2 * width, width);  // up: transposed convolution, two more
  }
  const Result<Model> one = build("unet", {{"classes", "1"}});
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(one->forward.parameter_count(), 31037633);
  EXPECT_EQ(one->forward.parameter_count(), expected + 65);
  const Result<Model> two = build("unet", {{"classes", "2"}});
  EXPECT_EQ(two->forward.parameter_count(), 31037633 + 65);
}

TEST(ConvolutionalZoo, UNetGivesAClassPerPixelForAnySize) {
  for (const char* image : {"64", "100", "37"}) {
    const Result<Model> model = build("unet", {{"image", image}, {"batch", "2"}, {"width", "8"}});
    ASSERT_TRUE(model) << model.error().message();
    const auto shape = model->forward.shape(model->forward.results().front());
    EXPECT_EQ(Shape(shape.begin(), shape.end()), (Shape{2, 2, std::stoll(image), std::stoll(image)}));
    EXPECT_EQ(model->input.kind, InputKind::dense);
  }
}

std::map<std::string, int> counted_ops(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Op& op : graph.ops()) ++counts[std::string(graph.name(op))];
  return counts;
}

// NAS-Bench-201 says 220.12 and 7.78 million for these two, which are multiply-adds of convolutions and classifier.
TEST(NasCell, DoesThePublishedWork) {
  for (const auto& [operation, expected] :
       {std::pair{"nor_conv_3x3", int64_t{220119680}}, {"skip_connect", int64_t{7783040}}}) {
    const Result<Model> model = build("nas_cell", {{"cell", every_edge(operation)}, {"batch", "1"}});
    ASSERT_TRUE(model) << model.error().message();
    const Graph& graph = model->forward;
    int64_t work = 0;
    for (const Op& op : graph.ops()) {
      const bool convolution = graph.name(op) == "aten.convolution.default";
      if (!convolution && graph.name(op) != "aten.linear.default") continue;
      const auto out = graph.shape(graph.outputs(op).front());
      const auto weight = graph.shape(graph.inputs(op)[1]);
      int64_t products = convolution ? out[2] * out[3] : 1;
      for (const int64_t extent : weight) products *= extent;
      work += products;
    }
    EXPECT_EQ(work, expected) << operation;
  }
}

// A node is Python's sum of its edges: the first is added to zero. An edge `none` multiplies by zero.
TEST(NasCell, RunsWhatTheBenchmarkRuns) {
  const char* cell = "|none~0|+|nor_conv_1x1~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_3x3~2|";
  const Result<Model> model = build("nas_cell", {{"cell", cell}, {"cells", "2"}, {"ch", "8"}, {"image", "24"}});
  ASSERT_TRUE(model) << model.error().message();
  const std::map<std::string, int> counts = counted_ops(model->forward);
  EXPECT_EQ(counts.at("aten.mul.Tensor"), 6 * 2);
  EXPECT_EQ(counts.at("aten.add.Tensor"), 6 * 6 + 2);
  EXPECT_EQ(counts.at("aten.avg_pool2d.default"), 6 + 2);
  EXPECT_EQ(counts.at("aten.convolution.default"), 1 + 6 * 2 + 2 * 3);
  EXPECT_EQ(counts.at("aten.relu.default"), 6 * 2 + 2 * 2);
  EXPECT_EQ(counts.at("aten.relu_.default"), 1);
  std::vector<std::string> names;
  for (const TensorId id : model->forward.parameters()) {
    const std::string name =
        model->forward.names()[model->forward.storage(model->forward.tensor(id).storage).root_name];
    if (name.starts_with("cells.1.") || name.starts_with("cells.2.")) names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "cells.1.layers.1.op.1.weight", "cells.1.layers.1.op.2.weight", "cells.1.layers.1.op.2.bias",
                       "cells.1.layers.5.op.1.weight", "cells.1.layers.5.op.2.weight", "cells.1.layers.5.op.2.bias",
                       "cells.2.conv_a.op.1.weight", "cells.2.conv_a.op.2.weight", "cells.2.conv_a.op.2.bias",
                       "cells.2.conv_b.op.1.weight", "cells.2.conv_b.op.2.weight", "cells.2.conv_b.op.2.bias",
                       "cells.2.downsample.1.weight"}));
}

TEST(NasCell, BrokenCellsAreAnsweredWithTheRemedy) {
  const std::string good = every_edge("none");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string cell = good;
    return cell.replace(cell.rfind(from), from.size(), to);
  };
  EXPECT_TRUE(build("nas_cell", {{"cell", good}}));  // gives the same for every image, but the benchmark has it
  const std::pair<std::string, const char*> cases[] = {
      {"", "has 1 nodes"},
      {good + "+", "has 4 nodes"},
      {good.substr(1), "node 1 of the cell is 'none~0|'"},
      {good.substr(0, good.size() - 1), "write 3 of |operation~node"},
      {with("|none~1", ""), "node 3 of the cell"},
      {with("none~2", "dil_conv_3x3~2"), "edge 'dil_conv_3x3~2' into node 3"},
      {with("none~2", "dil_conv_3x3~2"), "use one of none, skip_connect, nor_conv_1x1"},
      {with("none~2", "nor_conv_1x1~1"), "write nor_conv_1x1~2"},
      {with("none~2", "none"), "write none~2"},
      {with("none~2", "none~22"), "write none~2"},
  };
  for (const auto& [cell, said] : cases) {
    const std::string message = failure("nas_cell", {{"cell", cell}});
    EXPECT_TRUE(mentions(message, said)) << message;
  }
  EXPECT_TRUE(mentions(failure("nas_cell", {{"image", "30"}}), "multiple of 4"));
}

TEST(ConvolutionalZoo, AuxiliaryHeadsAreFurtherResults) {
  EXPECT_EQ(build("googlenet", {{"aux", "1"}})->forward.results().size(), 3U);
  EXPECT_EQ(build("inception_v3", {{"aux", "1"}})->forward.results().size(), 2U);
  EXPECT_EQ(build("googlenet", {})->forward.results().size(), 1U);
}

TEST(Registry, NamesAreUniqueAndModelsBuild) {
  std::set<std::string> names;
  for (const Family& family : families()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_FALSE(family.description.empty()) << family.name;
    std::set<std::string> parameters;
    for (const Parameter& parameter : family.parameters) {
      EXPECT_TRUE(parameters.insert(parameter.name).second) << family.name << " " << parameter.name;
      EXPECT_FALSE(parameter.help.empty()) << family.name << " " << parameter.name;
    }
    const Result<Model> model = build(family.name, {});
    EXPECT_TRUE(model) << family.name << ": " << (model ? "" : model.error().message());
  }
  names.clear();
  for (const NamedModel& model : models()) EXPECT_TRUE(names.insert(model.name).second) << model.name;
}

TEST(Build, SettingsReachTheModel) {
  const Result<Model> model = build(
      "resnet50", {{"batch", "7"}, {"channels", "4"}, {"image", "96"}, {"classes", "10"}, {"layers", "1, 1,2,1"}});
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->family, "resnet");
  EXPECT_EQ(model->input.batch, 7);
  EXPECT_EQ(model->input.channels, 4);
  EXPECT_EQ(model->input.size, 96);
  EXPECT_EQ(model->input.classes, 10);
  EXPECT_EQ(model->configuration.list("layers"), (std::vector<int64_t>{1, 1, 2, 1}));
  const auto logits = model->forward.shape(model->forward.results().front());
  EXPECT_EQ(Shape(logits.begin(), logits.end()), (Shape{7, 10}));
}

TEST(Build, UnknownNamesAreAnsweredWithTheNearest) {
  EXPECT_TRUE(mentions(failure("resnet5O", {}), "resnet50")) << failure("resnet5O", {});
  EXPECT_TRUE(mentions(failure("resnet50", {{"bacth", "1"}}), "batch"));
  EXPECT_TRUE(mentions(failure("", {}), "forerun zoo"));
}

TEST(Build, ValuesOfTheWrongKindAreErrors) {
  for (const char* value : {"", "four", "4.5", "4 ", "0x4", "99999999999999999999", "-1", "0"}) {
    EXPECT_TRUE(mentions(failure("resnet50", {{"batch", value}}), "batch")) << value;
  }
  for (const char* value : {"", "3,4", "3,4,6,x", "3,,6,3", "3,4,6,0", "3,4,6,-3", "3;4;6;3", "[3,4,6"}) {
    EXPECT_TRUE(mentions(failure("resnet50", {{"layers", value}}), "layers")) << value;
  }
  EXPECT_TRUE(mentions(failure("vgg16", {{"bn", "maybe"}}), "bn"));
  for (const char* value : {"nan", "inf", "-0.5", "1e300", "2"}) {
    EXPECT_TRUE(mentions(failure("vgg16", {{"dropout", value}}), "dropout")) << value;
  }
}

TEST(Build, NonsenseEndsInAnErrorNotInACrash) {
  const std::pair<const char*, Settings> cases[] = {
      {"resnet", {{"block", "round"}}},
      {"resnet", {{"block", "basic"}, {"width", "128"}}},
      {"resnet", {{"width", "1000000000"}, {"groups", "1000000000"}}},
      {"resnet", {{"layers", "1000000000,1,1,1"}}},
      {"resnet50", {{"batch", "1000000000"}, {"image", "1000000000"}}},
      {"alexnet", {{"image", "8"}}},
      {"alexnet", {{"mult", "0"}}},
      {"alexnet", {{"mult", "1000000"}, {"fc", "1000000000"}}},
      {"convnext", {{"dim", "1000000000"}}},
      {"efficientnet", {{"d", "1000000"}}},
      {"efficientnet", {{"w", "1000000"}, {"batch", "1000000"}}},
      {"densenet", {{"layers", "4000"}}},
      {"densenet", {{"growth", "1000000000"}, {"bn_size", "1000000000"}}},
      {"inception_v3", {{"image", "32"}}},
      {"mnasnet", {{"alpha", "1000000"}}},
      {"mobilenet_v3", {{"size", "huge"}}},
      {"randwire", {{"kind", "xy"}}},
      {"randwire", {{"kind", "ba"}, {"nodes", "5"}}},
      {"randwire", {{"kind", "ws"}, {"nodes", "3"}}},
      {"randwire", {{"nodes", "4096"}}},
      {"nas_cell", {{"cell", std::string(100000, '|')}}},
      {"nas_cell", {{"cells", "1000000000"}}},
      {"nas_cell", {{"ch", "1000000000"}}},
      {"regnet", {{"w_m", "1"}}},
      {"regnet", {{"w_m", "1000000"}, {"w_a", "1000000"}, {"w_0", "1000000000"}}},
      {"shufflenet", {{"out", "24,47,96,192,1024"}}},
      {"squeezenet", {{"version", "2"}}},
      {"unet", {{"depth", "40"}}},
      {"vgg", {{"cfg", "C"}}},
      {"vgg", {{"image", "16"}}},
  };
  for (const auto& [name, settings] : cases) EXPECT_FALSE(failure(name, settings).empty());
}

TEST(BuildRecorded, TakesArgumentsAndInput) {
  const InputSpec input = {.kind = InputKind::image, .batch = 3, .channels = 1, .size = 64, .classes = 100};
  const Result<Model> model = build_recorded("regnet", R"({"se": null, "depth": 16})", input);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->configuration.real("se"), 0);
  EXPECT_EQ(model->input.channels, 1);
  const auto logits = model->forward.shape(model->forward.results().front());
  EXPECT_EQ(Shape(logits.begin(), logits.end()), (Shape{3, 100}));
}

TEST(BuildRecorded, FaultsOfTheRecordAreErrors) {
  const InputSpec image = {.kind = InputKind::image, .batch = 3, .channels = 3, .size = 64, .classes = 10};
  EXPECT_TRUE(mentions(build_recorded("resnett", "{}", image).error().message(), "resnet"));
  EXPECT_TRUE(mentions(build_recorded("resnet", R"({"layer": [1,1,1,1]})", image).error().message(), "layers"));
  for (const char* arguments : {"", "[]", "{", "null", R"({"layers": "3,4,6,3"})", R"({"layers": [1.5]})",
                                R"({"width": -64})", R"({"width": 18446744073709551615})", R"({"block": 3})"}) {
    EXPECT_FALSE(build_recorded("resnet", arguments, image)) << arguments;
  }
  InputSpec wrong = image;
  wrong.kind = InputKind::tokens;
  EXPECT_FALSE(build_recorded("resnet", "{}", wrong));
  wrong = image;
  wrong.batch = -1;
  EXPECT_FALSE(build_recorded("resnet", "{}", wrong));
}

}  // namespace
}  // namespace forerun::zoo
