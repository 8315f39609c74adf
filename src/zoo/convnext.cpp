// ConvNeXt as torchvision builds it (Liu et al. 2022): depthwise 7x7, layer norm over channels, and an inverted MLP.
//
// Left out: stochastic depth.
#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;
using Layers = std::vector<int64_t>;

constexpr double kConvNextEps = 1e-6;

// torchvision's LayerNorm2d: channels last, normalized, channels first again, all in one module.
TensorId layer_norm_2d(ForwardBuilder& b, std::string_view name, TensorId x) {
  const LayerNorm norm(b, name, b.extent(x, 1), kConvNextEps);
  {
    const Scope scope(b, name);
    x = b.permute(x, {0, 2, 3, 1});
  }
  x = norm(x);
  const Scope scope(b, name);
  return b.permute(x, {0, 3, 1, 2});
}

TensorId permuted(ForwardBuilder& b, std::string_view name, TensorId x, const Shape& dims) {
  const Scope scope(b, name);
  return b.permute(x, dims);
}

TensorId block(ForwardBuilder& b, std::string_view name, TensorId x) {
  const Scope scope(b, name);
  const TensorId identity = x;
  const int64_t dim = b.extent(x, 1);
  const TensorId layer_scale = b.parameter("layer_scale", {dim, 1, 1});
  {
    const Scope inner(b, "block");
    x = Conv2d(b, "0", dim, dim, {.kernel = 7, .padding = 3, .groups = dim})(x);
    x = permuted(b, "1", x, {0, 2, 3, 1});
    x = LayerNorm(b, "2", dim, kConvNextEps)(x);
    x = Linear(b, "3", dim, 4 * dim)(x);
    {
      const Scope gelu(b, "4");
      x = b.gelu(x);
    }
    x = Linear(b, "5", 4 * dim, dim)(x);
    x = permuted(b, "6", x, {0, 3, 1, 2});
  }
  return b.add_(b.mul(layer_scale, x), identity);
}

void build_convnext(ForwardBuilder& b, const Configuration& c) {
  const Layers& layers = c.list("layers");
  if (!has_entries(b, "layers", layers, 4)) return;
  TensorId x = image_input(b, c);
  int64_t dim = c.integer("dim");
  {
    const Scope features(b, "features");
    {
      const Scope stem(b, "0");
      x = Conv2d(b, "0", c.integer("channels"), dim, {.kernel = 4, .stride = 4})(x);
      x = layer_norm_2d(b, "1", x);
    }
    for (size_t stage = 0; stage < layers.size(); ++stage) {
      if (stage > 0) {
        const Scope downsample(b, std::to_string(2 * stage));
        x = layer_norm_2d(b, "0", x);
        x = Conv2d(b, "1", dim, 2 * dim, {.kernel = 2, .stride = 2})(x);
        dim *= 2;
      }
      const Scope blocks(b, std::to_string(2 * stage + 1));
      for (int64_t i = 0; i < layers[stage]; ++i) x = block(b, std::to_string(i), x);
    }
  }
  x = global_pool(b, "avgpool", x);
  const Scope classifier(b, "classifier");
  x = layer_norm_2d(b, "0", x);
  {
    const Scope flatten(b, "1");
    x = b.flatten(x, 1);
  }
  b.result(Linear(b, "2", dim, c.integer("classes"))(x));
}

}  // namespace

Family convnext_family() {
  return {.name = "convnext",
          .description = "ConvNeXt (torchvision)",
          .parameters = with_image_parameters({
              {"dim", int64_t{96}, "channels of the first stage; each later stage doubles them"},
              {"layers", Layers{3, 3, 9, 3}, "blocks in each of the four stages"},
          }),
          .build = build_convnext};
}

std::vector<NamedModel> convnext_models() {
  return {{"convnext_tiny", "convnext", {{"dim", int64_t{96}}, {"layers", Layers{3, 3, 9, 3}}}},
          {"convnext_small", "convnext", {{"dim", int64_t{96}}, {"layers", Layers{3, 3, 27, 3}}}},
          {"convnext_base", "convnext", {{"dim", int64_t{128}}, {"layers", Layers{3, 3, 27, 3}}}},
          {"convnext_large", "convnext", {{"dim", int64_t{192}}, {"layers", Layers{3, 3, 27, 3}}}}};
}

}  // namespace forerun::zoo
