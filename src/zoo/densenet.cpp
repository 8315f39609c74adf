// DenseNet as torchvision builds it (Huang et al. 2016): a layer sees the concatenation of all before it in its block.
//
// Left out: checkpointing; dropout, which torchvision has but off.
#include <fmt/format.h>

#include <algorithm>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;
using Layers = std::vector<int64_t>;

TensorId dense_layer(ForwardBuilder& b, const std::vector<TensorId>& features, int64_t growth, int64_t bottleneck) {
  TensorId x = b.cat(features, 1);
  x = BatchNorm(b, "norm1", b.extent(x, 1))(x);
  x = activate(b, "relu1", Activation::relu_, x);
  x = Conv2d(b, "conv1", b.extent(x, 1), bottleneck * growth, {.kernel = 1, .bias = false})(x);
  x = BatchNorm(b, "norm2", bottleneck * growth)(x);
  x = activate(b, "relu2", Activation::relu_, x);
  return Conv2d(b, "conv2", bottleneck * growth, growth, {.kernel = 3, .padding = 1, .bias = false})(x);
}

TensorId transition(ForwardBuilder& b, std::string_view name, TensorId x) {
  const Scope scope(b, name);
  const int64_t in = b.extent(x, 1);
  x = BatchNorm(b, "norm", in)(x);
  x = activate(b, "relu", Activation::relu_, x);
  x = Conv2d(b, "conv", in, std::max<int64_t>(in / 2, 1), {.kernel = 1, .bias = false})(x);
  const Scope pool(b, "pool");
  return b.avg_pool2d(x, pooling(2, 2));
}

void build_densenet(ForwardBuilder& b, const Configuration& c) {
  const Layers& layers = c.list("layers");
  // A layer reads all before it: the work grows with the square of a block's length.
  if (!reasonable_depth(b, static_cast<double>(*std::max_element(layers.begin(), layers.end())) * 8)) return;
  const int64_t init = c.integer("init");
  TensorId x = image_input(b, c);
  {
    const Scope features(b, "features");
    x = Conv2d(b, "conv0", c.integer("channels"), init, {.kernel = 7, .stride = 2, .padding = 3, .bias = false})(x);
    x = BatchNorm(b, "norm0", init)(x);
    x = activate(b, "relu0", Activation::relu_, x);
    x = max_pool(b, "pool0", x, pooling(3, 2, 1));
    for (size_t i = 0; i < layers.size(); ++i) {
      if (i > 0) x = transition(b, fmt::format("transition{}", i), x);
      const Scope block(b, fmt::format("denseblock{}", i + 1));
      std::vector<TensorId> parts = {x};
      for (int64_t j = 0; j < layers[i]; ++j) {
        const Scope layer(b, fmt::format("denselayer{}", j + 1));
        parts.push_back(dense_layer(b, parts, c.integer("growth"), c.integer("bn_size")));
      }
      x = b.cat(parts, 1);
    }
    x = BatchNorm(b, "norm5", b.extent(x, 1))(x);
  }
  x = b.relu_(x);
  x = b.flatten(b.adaptive_avg_pool2d(x, {1, 1}), 1);
  b.result(Linear(b, "classifier", b.extent(x, 1), c.integer("classes"))(x));
}

NamedModel named(std::string name, Layers layers, int64_t growth, int64_t init) {
  return {std::move(name), "densenet", {{"layers", std::move(layers)}, {"growth", growth}, {"init", init}}};
}

}  // namespace

Family densenet_family() {
  return {.name = "densenet",
          .description = "DenseNet (torchvision)",
          .parameters = with_image_parameters({
              {"layers", Layers{6, 12, 24, 16}, "layers in each dense block"},
              {"growth", int64_t{32}, "channels each layer adds"},
              {"init", int64_t{64}, "channels of the first convolution"},
              {"bn_size", int64_t{4}, "bottleneck channels in multiples of growth"},
          }),
          .build = build_densenet};
}

std::vector<NamedModel> densenet_models() {
  return {named("densenet121", {6, 12, 24, 16}, 32, 64), named("densenet161", {6, 12, 36, 24}, 48, 96),
          named("densenet169", {6, 12, 32, 32}, 32, 64), named("densenet201", {6, 12, 48, 32}, 32, 64)};
}

}  // namespace forerun::zoo
