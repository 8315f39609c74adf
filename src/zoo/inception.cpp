// Inception v3 as torchvision builds it (Szegedy et al. 2015).
//
// The input is not re-normalized (torchvision's transform_input off). The auxiliary head, where switched on, is a
// second result after the logits.
#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

// A BasicConv registered and called at once; `kernel_w` differs from `kernel` in the 1x7 and 7x1 factors.
TensorId conv(ForwardBuilder& b, std::string_view name, TensorId x, int64_t out, const Conv2dOptions& options) {
  return BasicConv(b, name, b.extent(x, 1), out, options)(x);
}

constexpr Conv2dOptions square(int64_t kernel, int64_t padding = 0, int64_t stride = 1) {
  return {.kernel = kernel, .stride = stride, .padding = padding};
}
constexpr Conv2dOptions wide(int64_t kernel) {  // 1 x kernel
  return {.kernel = 1, .padding = 0, .kernel_w = kernel, .padding_w = kernel / 2};
}
constexpr Conv2dOptions tall(int64_t kernel) {  // kernel x 1
  return {.kernel = kernel, .padding = kernel / 2, .kernel_w = 1, .padding_w = 0};
}

TensorId pool_branch(ForwardBuilder& b, TensorId x, int64_t out) {
  return conv(b, "branch_pool", b.avg_pool2d(x, pooling(3, 1, 1)), out, square(1));
}

TensorId block_a(ForwardBuilder& b, std::string_view name, TensorId x, int64_t pool_features) {
  const Scope scope(b, name);
  const TensorId one = conv(b, "branch1x1", x, 64, square(1));
  TensorId five = conv(b, "branch5x5_1", x, 48, square(1));
  five = conv(b, "branch5x5_2", five, 64, square(5, 2));
  TensorId three = conv(b, "branch3x3dbl_1", x, 64, square(1));
  three = conv(b, "branch3x3dbl_2", three, 96, square(3, 1));
  three = conv(b, "branch3x3dbl_3", three, 96, square(3, 1));
  return b.cat({one, five, three, pool_branch(b, x, pool_features)}, 1);
}

TensorId block_b(ForwardBuilder& b, std::string_view name, TensorId x) {
  const Scope scope(b, name);
  const TensorId three = conv(b, "branch3x3", x, 384, square(3, 0, 2));
  TensorId twice = conv(b, "branch3x3dbl_1", x, 64, square(1));
  twice = conv(b, "branch3x3dbl_2", twice, 96, square(3, 1));
  twice = conv(b, "branch3x3dbl_3", twice, 96, square(3, 0, 2));
  return b.cat({three, twice, b.max_pool2d(x, pooling(3, 2))}, 1);
}

TensorId block_c(ForwardBuilder& b, std::string_view name, TensorId x, int64_t inner) {
  const Scope scope(b, name);
  const TensorId one = conv(b, "branch1x1", x, 192, square(1));
  TensorId seven = conv(b, "branch7x7_1", x, inner, square(1));
  seven = conv(b, "branch7x7_2", seven, inner, wide(7));
  seven = conv(b, "branch7x7_3", seven, 192, tall(7));
  TensorId twice = conv(b, "branch7x7dbl_1", x, inner, square(1));
  twice = conv(b, "branch7x7dbl_2", twice, inner, tall(7));
  twice = conv(b, "branch7x7dbl_3", twice, inner, wide(7));
  twice = conv(b, "branch7x7dbl_4", twice, inner, tall(7));
  twice = conv(b, "branch7x7dbl_5", twice, 192, wide(7));
  return b.cat({one, seven, twice, pool_branch(b, x, 192)}, 1);
}

TensorId block_d(ForwardBuilder& b, std::string_view name, TensorId x) {
  const Scope scope(b, name);
  TensorId three = conv(b, "branch3x3_1", x, 192, square(1));
  three = conv(b, "branch3x3_2", three, 320, square(3, 0, 2));
  TensorId seven = conv(b, "branch7x7x3_1", x, 192, square(1));
  seven = conv(b, "branch7x7x3_2", seven, 192, wide(7));
  seven = conv(b, "branch7x7x3_3", seven, 192, tall(7));
  seven = conv(b, "branch7x7x3_4", seven, 192, square(3, 0, 2));
  return b.cat({three, seven, b.max_pool2d(x, pooling(3, 2))}, 1);
}

TensorId block_e(ForwardBuilder& b, std::string_view name, TensorId x) {
  const Scope scope(b, name);
  const TensorId one = conv(b, "branch1x1", x, 320, square(1));
  TensorId three = conv(b, "branch3x3_1", x, 384, square(1));
  const TensorId three_a = conv(b, "branch3x3_2a", three, 384, wide(3));
  const TensorId three_b = conv(b, "branch3x3_2b", three, 384, tall(3));
  three = b.cat({three_a, three_b}, 1);
  TensorId twice = conv(b, "branch3x3dbl_1", x, 448, square(1));
  twice = conv(b, "branch3x3dbl_2", twice, 384, square(3, 1));
  const TensorId twice_a = conv(b, "branch3x3dbl_3a", twice, 384, wide(3));
  const TensorId twice_b = conv(b, "branch3x3dbl_3b", twice, 384, tall(3));
  twice = b.cat({twice_a, twice_b}, 1);
  return b.cat({one, three, twice, pool_branch(b, x, 192)}, 1);
}

TensorId auxiliary_head(ForwardBuilder& b, TensorId x, int64_t classes) {
  const Scope scope(b, "AuxLogits");
  x = b.avg_pool2d(x, pooling(5, 3));
  x = conv(b, "conv0", x, 128, square(1));
  x = conv(b, "conv1", x, 768, square(5));
  x = b.flatten(b.adaptive_avg_pool2d(x, {1, 1}), 1);
  return Linear(b, "fc", 768, classes)(x);
}

void build_inception(ForwardBuilder& b, const Configuration& c) {
  TensorId x = image_input(b, c);
  x = conv(b, "Conv2d_1a_3x3", x, 32, square(3, 0, 2));
  x = conv(b, "Conv2d_2a_3x3", x, 32, square(3));
  x = conv(b, "Conv2d_2b_3x3", x, 64, square(3, 1));
  x = max_pool(b, "maxpool1", x, pooling(3, 2));
  x = conv(b, "Conv2d_3b_1x1", x, 80, square(1));
  x = conv(b, "Conv2d_4a_3x3", x, 192, square(3));
  x = max_pool(b, "maxpool2", x, pooling(3, 2));
  x = block_a(b, "Mixed_5b", x, 32);
  x = block_a(b, "Mixed_5c", x, 64);
  x = block_a(b, "Mixed_5d", x, 64);
  x = block_b(b, "Mixed_6a", x);
  x = block_c(b, "Mixed_6b", x, 128);
  x = block_c(b, "Mixed_6c", x, 160);
  x = block_c(b, "Mixed_6d", x, 160);
  x = block_c(b, "Mixed_6e", x, 192);
  std::optional<TensorId> auxiliary;
  if (c.flag("aux")) auxiliary = auxiliary_head(b, x, c.integer("classes"));
  x = block_d(b, "Mixed_7a", x);
  x = block_e(b, "Mixed_7b", x);
  x = block_e(b, "Mixed_7c", x);
  x = global_pool(b, "avgpool", x);
  x = b.flatten(Dropout(b, "dropout", c.real("dropout"))(x), 1);
  b.result(Linear(b, "fc", b.extent(x, 1), c.integer("classes"))(x));
  if (auxiliary) b.result(*auxiliary);
}

}  // namespace

Family inception_family() {
  return {.name = "inception_v3",
          .description = "Inception v3 (torchvision)",
          .parameters = with_image_parameters(
              {
                  {"aux", false, "with the auxiliary head"},
                  {"dropout", 0.5, "dropout before the classifier"},
              },
              299),
          .build = build_inception};
}

std::vector<NamedModel> inception_models() { return {{"inception_v3", "inception_v3", {}}}; }

}  // namespace forerun::zoo
