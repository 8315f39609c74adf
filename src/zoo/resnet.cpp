// ResNet (He et al. 2015), Wide ResNet (Zagoruyko and Komodakis 2016) and ResNeXt (Xie et al. 2016) as torchvision
// builds them.
//
// A bottleneck's 3x3 convolution has planes * width / 64 * groups channels and carries the stride.
// Left out: dilation instead of stride.
#include <fmt/format.h>

#include <numeric>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;
using Layers = std::vector<int64_t>;

struct BlockOptions {
  bool bottleneck = true;
  int64_t width = 64;
  int64_t groups = 1;
};

TensorId conv_norm(ForwardBuilder& b, const std::string& conv, const std::string& norm, TensorId x, int64_t out,
                   const Conv2dOptions& options) {
  x = Conv2d(b, conv, b.extent(x, 1), out, options)(x);
  return BatchNorm(b, norm, out)(x);
}

TensorId residual_block(ForwardBuilder& b, std::string_view name, TensorId x, int64_t planes, int64_t stride,
                        const BlockOptions& options) {
  const Scope scope(b, name);
  TensorId identity = x;
  const int64_t in = b.extent(x, 1);
  const int64_t out = options.bottleneck ? planes * 4 : planes;
  if (options.bottleneck) {
    const auto inner = static_cast<int64_t>(static_cast<double>(planes) * (static_cast<double>(options.width) / 64.0)) *
                       options.groups;
    x = conv_norm(b, "conv1", "bn1", x, inner, {.kernel = 1, .bias = false});
    x = activate(b, "relu", Activation::relu_, x);
    x = conv_norm(b, "conv2", "bn2", x, inner,
                  {.kernel = 3, .stride = stride, .padding = 1, .groups = options.groups, .bias = false});
    x = activate(b, "relu", Activation::relu_, x);
    x = conv_norm(b, "conv3", "bn3", x, out, {.kernel = 1, .bias = false});
  } else {
    x = conv_norm(b, "conv1", "bn1", x, out, {.kernel = 3, .stride = stride, .padding = 1, .bias = false});
    x = activate(b, "relu", Activation::relu_, x);
    x = conv_norm(b, "conv2", "bn2", x, out, {.kernel = 3, .padding = 1, .bias = false});
  }
  if (stride != 1 || in != out) {
    const Scope downsample(b, "downsample");
    identity = conv_norm(b, "0", "1", identity, out, {.kernel = 1, .stride = stride, .bias = false});
  }
  x = b.add_(x, identity);
  return activate(b, "relu", Activation::relu_, x);
}

void build_network(ForwardBuilder& b, const Configuration& c, const BlockOptions& options) {
  const Layers& layers = c.list("layers");
  if (!has_entries(b, "layers", layers, 4)) return;
  if (options.width * options.groups > 65536) {
    b.fail(fmt::format("width {} times groups {} is more than 65536", options.width, options.groups),
           "build a narrower model");
    return;
  }
  TensorId x = image_input(b, c);
  x = conv_norm(b, "conv1", "bn1", x, 64, {.kernel = 7, .stride = 2, .padding = 3, .bias = false});
  x = activate(b, "relu", Activation::relu_, x);
  x = max_pool(b, "maxpool", x, pooling(3, 2, 1));
  for (size_t stage = 0; stage < 4; ++stage) {
    const Scope scope(b, fmt::format("layer{}", stage + 1));
    for (int64_t i = 0; i < layers[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = residual_block(b, std::to_string(i), x, int64_t{64} << stage, stride, options);
    }
  }
  x = b.flatten(global_pool(b, "avgpool", x), 1);
  b.result(Linear(b, "fc", b.extent(x, 1), c.integer("classes"))(x));
}

void build_resnet(ForwardBuilder& b, const Configuration& c) {
  const std::string& block = c.text("block");
  if (block != "basic" && block != "bottleneck") {
    b.fail(fmt::format("block '{}' is neither basic nor bottleneck", block), "use block=basic or block=bottleneck");
    return;
  }
  const BlockOptions options = {block == "bottleneck", c.integer("width"), c.integer("groups")};
  if (!options.bottleneck && (options.width != 64 || options.groups != 1)) {
    b.fail("basic blocks have width 64 and one group", "use block=bottleneck for other widths and groups");
    return;
  }
  build_network(b, c, options);
}

void build_wide_resnet(ForwardBuilder& b, const Configuration& c) {
  build_network(b, c, {true, c.integer("width"), 1});
}

}  // namespace

Family resnet_family() {
  return {.name = "resnet",
          .description = "ResNet and ResNeXt (torchvision)",
          .parameters = with_image_parameters({
              {"block", "bottleneck", "basic (two 3x3) or bottleneck (1x1, 3x3, 1x1)"},
              {"layers", Layers{3, 4, 6, 3}, "blocks in each of the four stages"},
              {"width", int64_t{64}, "width per group of a bottleneck's 3x3 convolution in the first stage"},
              {"groups", int64_t{1}, "groups of a bottleneck's 3x3 convolution (ResNeXt: 32)"},
          }),
          .build = build_resnet};
}

Family wide_resnet_family() {
  return {.name = "wide_resnet",
          .description = "Wide ResNet with bottlenecks (torchvision)",
          .parameters = with_image_parameters({
              {"layers", Layers{3, 4, 6, 3}, "blocks in each of the four stages"},
              {"width", int64_t{128}, "width of a bottleneck's 3x3 convolution in the first stage"},
          }),
          .build = build_wide_resnet};
}

std::vector<NamedModel> resnet_models() {
  const auto resnext = [](Layers layers, int64_t groups, int64_t width) {
    return std::vector<std::pair<std::string, ParameterValue>>{
        {"layers", layers}, {"groups", groups}, {"width", width}};
  };
  return {
      {"resnet18", "resnet", {{"block", "basic"}, {"layers", Layers{2, 2, 2, 2}}}},
      {"resnet34", "resnet", {{"block", "basic"}, {"layers", Layers{3, 4, 6, 3}}}},
      {"resnet50", "resnet", {{"layers", Layers{3, 4, 6, 3}}}},
      {"resnet101", "resnet", {{"layers", Layers{3, 4, 23, 3}}}},
      {"resnet152", "resnet", {{"layers", Layers{3, 8, 36, 3}}}},
      {"resnext50_32x4d", "resnet", resnext({3, 4, 6, 3}, 32, 4)},
      {"resnext101_32x8d", "resnet", resnext({3, 4, 23, 3}, 32, 8)},
      {"resnext101_64x4d", "resnet", resnext({3, 4, 23, 3}, 64, 4)},
      {"wide_resnet50_2", "wide_resnet", {{"layers", Layers{3, 4, 6, 3}}}},
      {"wide_resnet101_2", "wide_resnet", {{"layers", Layers{3, 4, 23, 3}}}},
  };
}

}  // namespace forerun::zoo
