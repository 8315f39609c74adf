// EfficientNet as torchvision builds it (Tan and Le 2019): B0 with its widths and depths scaled.
//
// Left out: stochastic depth; EfficientNetV2.
#include <array>
#include <cmath>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct MbConvStage {
  int64_t expansion, kernel, stride, out, layers;
};

constexpr std::array<MbConvStage, 7> kStages = {{{1, 3, 1, 16, 1},
                                                 {6, 3, 2, 24, 2},
                                                 {6, 5, 2, 40, 2},
                                                 {6, 3, 2, 80, 3},
                                                 {6, 5, 1, 112, 3},
                                                 {6, 5, 2, 192, 4},
                                                 {6, 3, 1, 320, 1}}};

// Mobile inverted bottleneck: expand, depthwise, squeeze-and-excitation, project.
TensorId mb_conv(ForwardBuilder& b, TensorId x, const MbConvStage& stage, int64_t out, int64_t stride,
                 const NormOptions& norm) {
  const TensorId identity = x;
  const int64_t in = b.extent(x, 1);
  const int64_t expanded = make_divisible(static_cast<double>(in * stage.expansion), 8);
  {
    const Scope scope(b, "block");
    int64_t module = 0;
    if (expanded != in) {
      x = conv_norm_activation(b, std::to_string(module++), x, expanded,
                               {.kernel = 1, .activation = Activation::silu_, .norm = norm});
    }
    const ConvNormOptions depthwise = {
        .kernel = stage.kernel, .stride = stride, .groups = expanded, .activation = Activation::silu_, .norm = norm};
    x = conv_norm_activation(b, std::to_string(module++), x, expanded, depthwise);
    x = squeeze_excitation(b, std::to_string(module++), x, std::max<int64_t>(1, in / 4), Activation::silu_,
                           Activation::sigmoid);
    x = conv_norm_activation(b, std::to_string(module++), x, out,
                             {.kernel = 1, .activation = Activation::none, .norm = norm});
  }
  return stride == 1 && in == out ? b.add_(x, identity) : x;
}

void build_efficientnet(ForwardBuilder& b, const Configuration& c) {
  const double width = c.real("w");
  const double depth = c.real("d");
  if (!reasonable_depth(b, 16 * depth)) return;
  const NormOptions norm = {c.real("bn_eps"), c.real("bn_momentum")};
  const auto channels = [&](int64_t base) { return make_divisible(static_cast<double>(base) * width, 8); };
  TensorId x = image_input(b, c);
  {
    const Scope features(b, "features");
    const ConvNormOptions stem = {.kernel = 3, .stride = 2, .activation = Activation::silu_, .norm = norm};
    x = conv_norm_activation(b, "0", x, channels(32), stem);
    for (size_t i = 0; i < kStages.size(); ++i) {
      const Scope stage(b, std::to_string(i + 1));
      const auto layers = static_cast<int64_t>(std::ceil(static_cast<double>(kStages[i].layers) * depth));
      for (int64_t j = 0; j < layers; ++j) {
        const Scope block(b, std::to_string(j));
        x = mb_conv(b, x, kStages[i], channels(kStages[i].out), j == 0 ? kStages[i].stride : 1, norm);
      }
    }
    x = conv_norm_activation(b, "8", x, 4 * b.extent(x, 1),
                             {.kernel = 1, .activation = Activation::silu_, .norm = norm});
  }
  x = b.flatten(global_pool(b, "avgpool", x), 1);
  const Scope classifier(b, "classifier");
  x = dropout_in_place(b, "0", x, c.real("dropout"));
  b.result(Linear(b, "1", b.extent(x, 1), c.integer("classes"))(x));
}

}  // namespace

Family efficientnet_family() {
  return {.name = "efficientnet",
          .description = "EfficientNet B0 scaled (torchvision)",
          .parameters = with_image_parameters({
              {"w", 1.0, "multiplier of the widths"},
              {"d", 1.0, "multiplier of the depths"},
              {"dropout", 0.2, "dropout before the classifier"},
              {"bn_eps", 1e-5, "epsilon of batch norm"},
              {"bn_momentum", 0.1, "momentum of batch norm"},
          }),
          .build = build_efficientnet};
}

std::vector<NamedModel> efficientnet_models() {
  const auto scaled = [](std::string name, double w, double d, double dropout, bool large) {
    NamedModel model = {std::move(name), "efficientnet", {{"w", w}, {"d", d}, {"dropout", dropout}}};
    if (large) model.settings.insert(model.settings.end(), {{"bn_eps", 0.001}, {"bn_momentum", 0.01}});
    return model;
  };
  return {scaled("efficientnet_b0", 1.0, 1.0, 0.2, false), scaled("efficientnet_b1", 1.0, 1.1, 0.2, false),
          scaled("efficientnet_b2", 1.1, 1.2, 0.3, false), scaled("efficientnet_b3", 1.2, 1.4, 0.3, false),
          scaled("efficientnet_b4", 1.4, 1.8, 0.4, false), scaled("efficientnet_b5", 1.6, 2.2, 0.4, true),
          scaled("efficientnet_b6", 1.8, 2.6, 0.5, true),  scaled("efficientnet_b7", 2.0, 3.1, 0.5, true)};
}

}  // namespace forerun::zoo
