// AlexNet as torchvision builds it (Krizhevsky 2014, one tower), with open widths.
#include <array>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

TensorId features(ForwardBuilder& b, TensorId x, double multiplier) {
  struct Step {
    int64_t channels, kernel, stride, padding;
    bool pool;
  };
  constexpr std::array<Step, 5> kSteps = {
      {{64, 11, 4, 2, true}, {192, 5, 1, 2, true}, {384, 3, 1, 1, false}, {256, 3, 1, 1, false}, {256, 3, 1, 1, true}}};
  const Scope scope(b, "features");
  int64_t module = 0;
  for (const Step& step : kSteps) {
    const auto out = static_cast<int64_t>(static_cast<double>(step.channels) * multiplier);
    if (out < 1) b.fail("mult leaves a layer without channels", "use a larger mult");
    const Conv2dOptions options = {.kernel = step.kernel, .stride = step.stride, .padding = step.padding};
    x = Conv2d(b, std::to_string(module++), b.extent(x, 1), out, options)(x);
    x = activate(b, std::to_string(module++), Activation::relu_, x);
    if (step.pool) x = max_pool(b, std::to_string(module++), x, pooling(3, 2));
  }
  return x;
}

void build_alexnet(ForwardBuilder& b, const Configuration& c) {
  TensorId x = features(b, image_input(b, c), c.real("mult"));
  {
    const Scope scope(b, "avgpool");
    x = b.adaptive_avg_pool2d(x, {6, 6});
  }
  x = b.flatten(x, 1);
  const Scope scope(b, "classifier");
  const int64_t fc = c.integer("fc");
  x = Dropout(b, "0", c.real("dropout"))(x);
  x = Linear(b, "1", b.extent(x, 1), fc)(x);
  x = activate(b, "2", Activation::relu_, x);
  x = Dropout(b, "3", c.real("dropout"))(x);
  x = Linear(b, "4", fc, fc)(x);
  x = activate(b, "5", Activation::relu_, x);
  b.result(Linear(b, "6", fc, c.integer("classes"))(x));
}

}  // namespace

Family alexnet_family() {
  return {.name = "alexnet",
          .description = "AlexNet (torchvision)",
          .parameters = with_image_parameters({
              {"mult", 1.0, "multiplier of the convolutions' channels"},
              {"fc", int64_t{4096}, "units of the two hidden linear layers"},
              {"dropout", 0.5, "dropout before the hidden linear layers"},
          }),
          .build = build_alexnet};
}

std::vector<NamedModel> alexnet_models() { return {{"alexnet", "alexnet", {}}}; }

}  // namespace forerun::zoo
