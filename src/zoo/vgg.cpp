// VGG as torchvision builds it (Simonyan and Zisserman 2014), with or without batch norm.
#include <fmt/format.h>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

// 3x3 convolutions before each of the five poolings, by the paper's letters; none where the letter is unknown.
std::vector<int64_t> convolutions(const std::string& cfg) {
  if (cfg == "A") return {1, 1, 2, 2, 2};
  if (cfg == "B") return {2, 2, 2, 2, 2};
  if (cfg == "D") return {2, 2, 3, 3, 3};
  if (cfg == "E") return {2, 2, 4, 4, 4};
  return {};
}

void build_vgg(ForwardBuilder& b, const Configuration& c) {
  constexpr int64_t kWidths[] = {64, 128, 256, 512, 512};
  const std::vector<int64_t> stages = convolutions(c.text("cfg"));
  if (stages.empty()) {
    b.fail(fmt::format("there is no VGG configuration '{}'", c.text("cfg").substr(0, 20)), "use cfg=A, B, D or E");
    return;
  }
  TensorId x = image_input(b, c);
  {
    const Scope features(b, "features");
    int64_t module = 0;
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      for (int64_t i = 0; i < stages[stage]; ++i) {
        x = Conv2d(b, std::to_string(module++), b.extent(x, 1), kWidths[stage], {.kernel = 3, .padding = 1})(x);
        if (c.flag("bn")) x = BatchNorm(b, std::to_string(module++), kWidths[stage])(x);
        x = activate(b, std::to_string(module++), Activation::relu_, x);
      }
      x = max_pool(b, std::to_string(module++), x, pooling(2, 2));
    }
  }
  {
    const Scope pool(b, "avgpool");
    x = b.adaptive_avg_pool2d(x, {7, 7});
  }
  x = b.flatten(x, 1);
  const Scope classifier(b, "classifier");
  const int64_t fc = c.integer("fc");
  x = Linear(b, "0", b.extent(x, 1), fc)(x);
  x = activate(b, "1", Activation::relu_, x);
  x = Dropout(b, "2", c.real("dropout"))(x);
  x = Linear(b, "3", fc, fc)(x);
  x = activate(b, "4", Activation::relu_, x);
  x = Dropout(b, "5", c.real("dropout"))(x);
  b.result(Linear(b, "6", fc, c.integer("classes"))(x));
}

}  // namespace

Family vgg_family() {
  return {.name = "vgg",
          .description = "VGG (torchvision)",
          .parameters = with_image_parameters({
              {"cfg", "D", "A, B, D or E: 11, 13, 16 or 19 layers"},
              {"bn", false, "batch norm after each convolution"},
              {"fc", int64_t{4096}, "units of the two hidden linear layers"},
              {"dropout", 0.5, "dropout after the hidden linear layers"},
          }),
          .build = build_vgg};
}

std::vector<NamedModel> vgg_models() {
  std::vector<NamedModel> models;
  for (const auto& [layers, cfg] : {std::pair{"vgg11", "A"}, {"vgg13", "B"}, {"vgg16", "D"}, {"vgg19", "E"}}) {
    models.push_back({layers, "vgg", {{"cfg", cfg}, {"bn", false}}});
    models.push_back({std::string(layers) + "_bn", "vgg", {{"cfg", cfg}, {"bn", true}}});
  }
  return models;
}

}  // namespace forerun::zoo
