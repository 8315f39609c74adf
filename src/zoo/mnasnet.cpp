// MnasNet as torchvision builds it (Tan et al. 2018): inverted residuals without squeeze-and-excitation, widths scaled.
//
// Left out: torchvision's version 1, kept there for old checkpoints only.
#include <array>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

constexpr NormOptions kMnasNetNorm = {.momentum = 1 - 0.9997};

TensorId depthwise_separable(ForwardBuilder& b, int64_t first, TensorId x, int64_t out, int64_t kernel,
                             int64_t stride) {
  const int64_t in = b.extent(x, 1);
  const Conv2dOptions depthwise = {
      .kernel = kernel, .stride = stride, .padding = kernel / 2, .groups = in, .bias = false};
  x = numbered_conv_norm(b, first, x, in, depthwise, true, kMnasNetNorm);
  return numbered_conv_norm(b, first + 3, x, out, {.kernel = 1, .bias = false}, false, kMnasNetNorm);
}

TensorId inverted_residual(ForwardBuilder& b, TensorId x, int64_t out, int64_t kernel, int64_t stride,
                           int64_t expansion) {
  const TensorId identity = x;
  const int64_t in = b.extent(x, 1);
  {
    const Scope layers(b, "layers");
    x = numbered_conv_norm(b, 0, x, in * expansion, {.kernel = 1, .bias = false}, true, kMnasNetNorm);
    x = depthwise_separable(b, 3, x, out, kernel, stride);
  }
  return in == out && stride == 1 ? b.add(x, identity) : x;
}

struct MnasNetStack {
  int64_t kernel, stride, expansion, repeats;
};

void build_mnasnet(ForwardBuilder& b, const Configuration& c) {
  constexpr std::array<int64_t, 8> kWidths = {32, 16, 24, 40, 80, 96, 192, 320};
  constexpr std::array<MnasNetStack, 6> kStacks = {
      {{3, 2, 3, 3}, {5, 2, 3, 3}, {5, 2, 6, 3}, {3, 1, 6, 2}, {5, 2, 6, 4}, {3, 1, 6, 1}}};
  std::array<int64_t, 8> widths{};
  for (size_t i = 0; i < widths.size(); ++i) {
    widths[i] = make_divisible(static_cast<double>(kWidths[i]) * c.real("alpha"), 8);
  }
  TensorId x = image_input(b, c);
  {
    const Scope layers(b, "layers");
    x = numbered_conv_norm(b, 0, x, widths[0], {.kernel = 3, .stride = 2, .padding = 1, .bias = false}, true,
                           kMnasNetNorm);
    x = depthwise_separable(b, 3, x, widths[1], 3, 1);
    for (size_t i = 0; i < kStacks.size(); ++i) {
      const Scope stack(b, std::to_string(8 + i));
      for (int64_t j = 0; j < kStacks[i].repeats; ++j) {
        const Scope block(b, std::to_string(j));
        x = inverted_residual(b, x, widths[i + 2], kStacks[i].kernel, j == 0 ? kStacks[i].stride : 1,
                              kStacks[i].expansion);
      }
    }
    x = numbered_conv_norm(b, 14, x, 1280, {.kernel = 1, .bias = false}, true, kMnasNetNorm);
  }
  x = b.mean(x, {2, 3}, false);
  const Scope classifier(b, "classifier");
  x = dropout_in_place(b, "0", x, c.real("dropout"));
  b.result(Linear(b, "1", 1280, c.integer("classes"))(x));
}

}  // namespace

Family mnasnet_family() {
  return {.name = "mnasnet",
          .description = "MnasNet (torchvision)",
          .parameters = with_image_parameters({
              {"alpha", 1.0, "multiplier of the widths"},
              {"dropout", 0.2, "dropout before the classifier"},
          }),
          .build = build_mnasnet};
}

std::vector<NamedModel> mnasnet_models() {
  return {{"mnasnet0_5", "mnasnet", {{"alpha", 0.5}}},
          {"mnasnet0_75", "mnasnet", {{"alpha", 0.75}}},
          {"mnasnet1_0", "mnasnet", {{"alpha", 1.0}}},
          {"mnasnet1_3", "mnasnet", {{"alpha", 1.3}}}};
}

}  // namespace forerun::zoo
