// MobileNet v2 and v3 as torchvision builds them (Sandler et al. 2018; Howard et al. 2019).
//
// Left out: v3's dilated and reduced-tail variants.
#include <fmt/format.h>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

// --- v2

TensorId inverted_residual_v2(ForwardBuilder& b, std::string_view name, TensorId x, int64_t out, int64_t stride,
                              int64_t expansion) {
  const Scope scope(b, name);
  const TensorId identity = x;
  const int64_t in = b.extent(x, 1);
  const int64_t hidden = in * expansion;
  {
    const Scope conv(b, "conv");
    int64_t module = 0;
    if (expansion != 1) {
      x = conv_norm_activation(b, std::to_string(module++), x, hidden, {.kernel = 1, .activation = Activation::relu6_});
    }
    x = conv_norm_activation(b, std::to_string(module++), x, hidden,
                             {.kernel = 3, .stride = stride, .groups = hidden, .activation = Activation::relu6_});
    x = Conv2d(b, std::to_string(module++), hidden, out, {.kernel = 1, .bias = false})(x);
    x = BatchNorm(b, std::to_string(module++), out)(x);
  }
  return stride == 1 && in == out ? b.add(identity, x) : x;
}

void build_v2(ForwardBuilder& b, const Configuration& c) {
  struct Stack {
    int64_t expansion, out, repeats, stride;
  };
  constexpr Stack kStacks[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  const double width = c.real("width_mult");
  const auto channels = [&](int64_t base, double multiplier) {
    return make_divisible(static_cast<double>(base) * multiplier, 8);
  };
  TensorId x = image_input(b, c);
  {
    const Scope features(b, "features");
    int64_t module = 0;
    x = conv_norm_activation(b, std::to_string(module++), x, channels(32, width),
                             {.kernel = 3, .stride = 2, .activation = Activation::relu6_});
    for (const Stack& stack : kStacks) {
      for (int64_t i = 0; i < stack.repeats; ++i) {
        x = inverted_residual_v2(b, std::to_string(module++), x, channels(stack.out, width), i == 0 ? stack.stride : 1,
                                 stack.expansion);
      }
    }
    x = conv_norm_activation(b, std::to_string(module++), x, channels(1280, std::max(1.0, width)),
                             {.kernel = 1, .activation = Activation::relu6_});
  }
  x = b.flatten(b.adaptive_avg_pool2d(x, {1, 1}), 1);
  const Scope classifier(b, "classifier");
  x = Dropout(b, "0", c.real("dropout"))(x);
  b.result(Linear(b, "1", b.extent(x, 1), c.integer("classes"))(x));
}

// --- v3

struct Block {
  int64_t kernel, expanded, out;
  bool se;
  Activation activation;
  int64_t stride;
};

constexpr Activation kRe = Activation::relu_;
constexpr Activation kHs = Activation::hardswish_;
constexpr NormOptions kNorm = {.eps = 0.001, .momentum = 0.01};

std::vector<Block> blocks_v3(bool large) {
  if (large) {
    return {{3, 16, 16, false, kRe, 1},  {3, 64, 24, false, kRe, 2},  {3, 72, 24, false, kRe, 1},
            {5, 72, 40, true, kRe, 2},   {5, 120, 40, true, kRe, 1},  {5, 120, 40, true, kRe, 1},
            {3, 240, 80, false, kHs, 2}, {3, 200, 80, false, kHs, 1}, {3, 184, 80, false, kHs, 1},
            {3, 184, 80, false, kHs, 1}, {3, 480, 112, true, kHs, 1}, {3, 672, 112, true, kHs, 1},
            {5, 672, 160, true, kHs, 2}, {5, 960, 160, true, kHs, 1}, {5, 960, 160, true, kHs, 1}};
  }
  return {{3, 16, 16, true, kRe, 2},  {3, 72, 24, false, kRe, 2}, {3, 88, 24, false, kRe, 1},
          {5, 96, 40, true, kHs, 2},  {5, 240, 40, true, kHs, 1}, {5, 240, 40, true, kHs, 1},
          {5, 120, 48, true, kHs, 1}, {5, 144, 48, true, kHs, 1}, {5, 288, 96, true, kHs, 2},
          {5, 576, 96, true, kHs, 1}, {5, 576, 96, true, kHs, 1}};
}

TensorId inverted_residual_v3(ForwardBuilder& b, std::string_view name, TensorId x, const Block& block) {
  const Scope scope(b, name);
  const TensorId identity = x;
  const int64_t in = b.extent(x, 1);
  {
    const Scope inner(b, "block");
    int64_t module = 0;
    if (block.expanded != in) {
      x = conv_norm_activation(b, std::to_string(module++), x, block.expanded,
                               {.kernel = 1, .activation = block.activation, .norm = kNorm});
    }
    const ConvNormOptions depthwise = {.kernel = block.kernel,
                                       .stride = block.stride,
                                       .groups = block.expanded,
                                       .activation = block.activation,
                                       .norm = kNorm};
    x = conv_norm_activation(b, std::to_string(module++), x, block.expanded, depthwise);
    if (block.se) {
      const int64_t quarter = block.expanded / 4;
      const int64_t squeezed = make_divisible(static_cast<double>(quarter), 8);
      x = squeeze_excitation(b, std::to_string(module++), x, squeezed, Activation::relu, Activation::hardsigmoid);
    }
    x = conv_norm_activation(b, std::to_string(module++), x, block.out,
                             {.kernel = 1, .activation = Activation::none, .norm = kNorm});
  }
  return block.stride == 1 && in == block.out ? b.add_(x, identity) : x;
}

void build_v3(ForwardBuilder& b, const Configuration& c) {
  const std::string& size = c.text("size");
  if (size != "large" && size != "small") {
    b.fail(fmt::format("there is no MobileNet v3 of size '{}'", size.substr(0, 20)), "use size=large or size=small");
    return;
  }
  const double width = c.real("width_mult");
  const auto channels = [&](int64_t base) { return make_divisible(static_cast<double>(base) * width, 8); };
  const ConvNormOptions stem = {.kernel = 3, .stride = 2, .activation = kHs, .norm = kNorm};
  TensorId x = image_input(b, c);
  {
    const Scope features(b, "features");
    int64_t module = 0;
    x = conv_norm_activation(b, std::to_string(module++), x, channels(16), stem);
    for (Block block : blocks_v3(size == "large")) {
      block.expanded = channels(block.expanded);
      block.out = channels(block.out);
      x = inverted_residual_v3(b, std::to_string(module++), x, block);
    }
    x = conv_norm_activation(b, std::to_string(module++), x, 6 * b.extent(x, 1),
                             {.kernel = 1, .activation = kHs, .norm = kNorm});
  }
  x = b.flatten(global_pool(b, "avgpool", x), 1);
  const Scope classifier(b, "classifier");
  const int64_t last = channels(size == "large" ? 1280 : 1024);
  x = Linear(b, "0", b.extent(x, 1), last)(x);
  x = activate(b, "1", kHs, x);
  x = dropout_in_place(b, "2", x, c.real("dropout"));
  b.result(Linear(b, "3", last, c.integer("classes"))(x));
}

}  // namespace

std::vector<Family> mobilenet_families() {
  return {{.name = "mobilenet_v2",
           .description = "MobileNet v2 (torchvision)",
           .parameters = with_image_parameters({
               {"width_mult", 1.0, "multiplier of the widths"},
               {"dropout", 0.2, "dropout before the classifier"},
           }),
           .build = build_v2},
          {.name = "mobilenet_v3",
           .description = "MobileNet v3 large and small (torchvision)",
           .parameters = with_image_parameters({
               {"size", "large", "large or small"},
               {"width_mult", 1.0, "multiplier of the widths"},
               {"dropout", 0.2, "dropout before the last layer"},
           }),
           .build = build_v3}};
}

std::vector<NamedModel> mobilenet_models() {
  return {{"mobilenet_v2", "mobilenet_v2", {}},
          {"mobilenet_v3_large", "mobilenet_v3", {{"size", "large"}}},
          {"mobilenet_v3_small", "mobilenet_v3", {{"size", "small"}}}};
}

}  // namespace forerun::zoo
