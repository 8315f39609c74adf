// U-Net (Ronneberger et al. 2015) in the form of milesial/Pytorch-UNet (bilinear off): padded 3x3 convolutions with
// batch norm, four poolings, transposed convolutions on the way up, skip connections concatenated before what comes
// from below.
//
// A class is predicted for every pixel. 31,037,633 parameters for 3 channels and 1 class, 65 more for each other class.
// Padding before the concatenation is left out where it would add nothing.
// Left out: the paper's unpadded convolutions and bilinear upsampling.
#include <fmt/format.h>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

TensorId double_conv(ForwardBuilder& b, std::string_view name, TensorId x, int64_t out) {
  const Scope scope(b, name);
  for (int64_t i = 0; i < 2; ++i) {
    x = Conv2d(b, std::to_string(3 * i), b.extent(x, 1), out, {.kernel = 3, .padding = 1, .bias = false})(x);
    x = BatchNorm(b, std::to_string(3 * i + 1), out)(x);
    x = activate(b, std::to_string(3 * i + 2), Activation::relu_, x);
  }
  return x;
}

TensorId up(ForwardBuilder& b, std::string_view name, TensorId x, TensorId skip) {
  const Scope scope(b, name);
  const int64_t in = b.extent(x, 1);
  const int64_t out = std::max<int64_t>(in / 2, 1);
  {
    const Scope transposed(b, "up");
    const TensorId weight = b.parameter("weight", {in, out, 2, 2});
    const TensorId bias = b.parameter("bias", {out});
    x = b.conv(x, weight, bias, {.stride = {2, 2}, .transposed = true});
  }
  const int64_t rows = b.extent(skip, 2) - b.extent(x, 2);
  const int64_t columns = b.extent(skip, 3) - b.extent(x, 3);
  if (rows != 0 || columns != 0) x = b.pad(x, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
  return double_conv(b, "conv.double_conv", b.cat({skip, x}, 1), out);
}

void build_unet(ForwardBuilder& b, const Configuration& c) {
  const int64_t depth = c.integer("depth");
  if (depth > 16) {
    b.fail(fmt::format("{} poolings leave nothing of an image", depth), "use a depth of at most 16");
    return;
  }
  int64_t width = c.integer("width");
  TensorId x = double_conv(b, "inc.double_conv", image_input(b, c), width);
  std::vector<TensorId> skips;
  for (int64_t i = 0; i < depth; ++i) {
    skips.push_back(x);
    const Scope scope(b, fmt::format("down{}", i + 1));
    x = max_pool(b, "maxpool_conv.0", x, pooling(2, 2));
    width *= 2;
    x = double_conv(b, "maxpool_conv.1.double_conv", x, width);
  }
  for (int64_t i = 0; i < depth; ++i) {
    x = up(b, fmt::format("up{}", i + 1), x, skips[static_cast<size_t>(depth - 1 - i)]);
  }
  const Scope scope(b, "outc");
  b.result(Conv2d(b, "conv", b.extent(x, 1), c.integer("classes"), {.kernel = 1})(x));
}

}  // namespace

Family unet_family() {
  return {.name = "unet",
          .description = "U-Net with batch norm and transposed convolutions, a class per pixel",
          .input = InputKind::dense,
          .parameters = with_image_parameters(
              {
                  {"width", int64_t{64}, "channels of the first level; each deeper level doubles them"},
                  {"depth", int64_t{4}, "poolings on the way down"},
              },
              256, 2),
          .build = build_unet};
}

std::vector<NamedModel> unet_models() { return {{"unet", "unet", {}}}; }

}  // namespace forerun::zoo
