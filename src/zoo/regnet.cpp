// RegNet X and Y as torchvision builds them (Radosavovic et al. 2020): stage widths from a quantized linear function.
//
// Y models have squeeze-and-excitation (se > 0). Arithmetic on widths is in single precision, as torchvision's is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct RegNetStage {
  int64_t width = 0;
  int64_t depth = 0;
  int64_t groups = 1;
};

std::vector<RegNetStage> stages_of(const Configuration& c) {
  const auto first = static_cast<float>(c.integer("w_0"));
  const auto slope = static_cast<float>(c.real("w_a"));
  const auto ratio = static_cast<float>(c.real("w_m"));
  std::vector<RegNetStage> stages;
  for (int64_t i = 0; i < c.integer("depth"); ++i) {
    const float continuous = static_cast<float>(i) * slope + first;
    const float capacity = std::nearbyint(std::log(continuous / first) / std::log(ratio));
    const auto width = static_cast<int64_t>(std::nearbyint(first * std::pow(ratio, capacity) / 8)) * 8;
    if (stages.empty() || stages.back().width != width) stages.push_back({.width = width});
    ++stages.back().depth;
  }
  for (RegNetStage& stage : stages) {
    const int64_t group_width = std::max<int64_t>(1, std::min(c.integer("group_width"), stage.width));
    stage.width = make_divisible(static_cast<double>(stage.width), group_width);
    stage.groups = stage.width / group_width;
  }
  return stages;
}

TensorId bottleneck(ForwardBuilder& b, TensorId x, const RegNetStage& stage, int64_t stride, double se) {
  const Scope scope(b, "f");
  const int64_t in = b.extent(x, 1);
  x = conv_norm_activation(b, "a", x, stage.width, {.kernel = 1});
  x = conv_norm_activation(b, "b", x, stage.width, {.kernel = 3, .stride = stride, .groups = stage.groups});
  if (se > 0) {
    const auto squeezed = static_cast<int64_t>(std::nearbyint(se * static_cast<double>(in)));
    x = squeeze_excitation(b, "se", x, squeezed, Activation::relu, Activation::sigmoid);
  }
  return conv_norm_activation(b, "c", x, stage.width, {.kernel = 1, .activation = Activation::none});
}

void build_regnet(ForwardBuilder& b, const Configuration& c) {
  const double se = c.real("se");
  if (c.real("w_m") < 1.01 || se > 1) {
    b.fail("w_m must be at least 1.01 and se at most 1", "set w_m to the ratio between stages, se to 0.25 or 0");
    return;
  }
  const std::vector<RegNetStage> stages = stages_of(c);
  TensorId x = image_input(b, c);
  x = conv_norm_activation(b, "stem", x, 32, {.kernel = 3, .stride = 2});
  {
    const Scope trunk(b, "trunk_output");
    for (size_t i = 0; i < stages.size(); ++i) {
      const Scope stage(b, fmt::format("block{}", i + 1));
      for (int64_t j = 0; j < stages[i].depth; ++j) {
        const Scope block(b, fmt::format("block{}-{}", i + 1, j));
        const int64_t stride = j == 0 ? 2 : 1;
        TensorId identity = x;
        if (j == 0 || b.extent(x, 1) != stages[i].width) {
          identity = conv_norm_activation(b, "proj", x, stages[i].width,
                                          {.kernel = 1, .stride = stride, .activation = Activation::none});
        }
        x = b.add(identity, bottleneck(b, x, stages[i], stride, se));
        x = activate(b, "activation", Activation::relu_, x);
      }
    }
  }
  x = b.flatten(global_pool(b, "avgpool", x), 1);
  b.result(Linear(b, "fc", b.extent(x, 1), c.integer("classes"))(x));
}

NamedModel named(std::string name, int64_t depth, int64_t w_0, double w_a, double w_m, int64_t group_width) {
  const double se = name.starts_with("regnet_y") ? 0.25 : 0.0;
  return {std::move(name),
          "regnet",
          {{"depth", depth}, {"w_0", w_0}, {"w_a", w_a}, {"w_m", w_m}, {"group_width", group_width}, {"se", se}}};
}

}  // namespace

Family regnet_family() {
  return {.name = "regnet",
          .description = "RegNet X and Y (torchvision)",
          .parameters = with_image_parameters({
              {"depth", int64_t{16}, "blocks in all stages together"},
              {"w_0", int64_t{48}, "width of the first block"},
              {"w_a", 27.89, "growth of the width from block to block"},
              {"w_m", 2.09, "ratio of the widths of neighbouring stages"},
              {"group_width", int64_t{8}, "channels in each group of the 3x3 convolutions"},
              {"se", 0.25, "squeeze-and-excitation: ratio to a block's input width; 0: none (RegNet X)"},
          }),
          .build = build_regnet};
}

std::vector<NamedModel> regnet_models() {
  return {named("regnet_y_400mf", 16, 48, 27.89, 2.09, 8),    named("regnet_y_800mf", 14, 56, 38.84, 2.4, 16),
          named("regnet_y_1_6gf", 27, 48, 20.71, 2.65, 24),   named("regnet_y_3_2gf", 21, 80, 42.63, 2.66, 24),
          named("regnet_y_8gf", 17, 192, 76.82, 2.19, 56),    named("regnet_y_16gf", 18, 200, 106.23, 2.48, 112),
          named("regnet_y_32gf", 20, 232, 115.89, 2.53, 232), named("regnet_x_400mf", 22, 24, 24.48, 2.54, 16),
          named("regnet_x_800mf", 16, 56, 35.73, 2.28, 16),   named("regnet_x_1_6gf", 18, 80, 34.01, 2.25, 24),
          named("regnet_x_3_2gf", 25, 88, 26.31, 2.25, 48),   named("regnet_x_8gf", 23, 80, 49.56, 2.88, 120),
          named("regnet_x_16gf", 22, 216, 55.59, 2.1, 128),   named("regnet_x_32gf", 23, 320, 69.86, 2.0, 168)};
}

}  // namespace forerun::zoo
