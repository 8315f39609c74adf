// ShuffleNet v2 as torchvision builds it (Ma et al. 2018): half the channels pass, the others are convolved, then all
// are shuffled.
#include <fmt/format.h>

#include "zoo/conv_blocks.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;
using Numbers = std::vector<int64_t>;

TensorId depthwise(ForwardBuilder& b, int64_t first, TensorId x, int64_t stride) {
  const int64_t channels = b.extent(x, 1);
  return numbered_conv_norm(b, first, x, channels,
                            {.kernel = 3, .stride = stride, .padding = 1, .groups = channels, .bias = false}, false);
}

TensorId branch1(ForwardBuilder& b, TensorId x, int64_t width) {
  const Scope scope(b, "branch1");
  return numbered_conv_norm(b, 2, depthwise(b, 0, x, 2), width, {.kernel = 1, .bias = false}, true);
}

TensorId branch2(ForwardBuilder& b, TensorId x, int64_t width, int64_t stride) {
  const Scope scope(b, "branch2");
  x = numbered_conv_norm(b, 0, x, width, {.kernel = 1, .bias = false}, true);
  x = depthwise(b, 3, x, stride);
  return numbered_conv_norm(b, 5, x, width, {.kernel = 1, .bias = false}, true);
}

TensorId shuffle(ForwardBuilder& b, TensorId x) {
  const Shape s = b.shape(x);
  if (s.size() != 4) return x;
  x = b.view(x, {s[0], 2, s[1] / 2, s[2], s[3]});
  x = b.contiguous(b.transpose(x, 1, 2));
  return b.view(x, s);
}

TensorId unit(ForwardBuilder& b, std::string_view name, TensorId x, int64_t out, int64_t stride) {
  const Scope scope(b, name);
  if (stride > 1) {
    const TensorId left = branch1(b, x, out / 2);
    const TensorId right = branch2(b, x, out / 2, stride);
    return shuffle(b, b.cat({left, right}, 1));
  }
  const std::vector<TensorId> halves = b.chunk(x, 2, 1);
  if (halves.size() != 2) return x;
  const TensorId right = branch2(b, halves[1], out / 2, 1);
  return shuffle(b, b.cat({halves[0], right}, 1));
}

void build_shufflenet(ForwardBuilder& b, const Configuration& c) {
  const Numbers& repeats = c.list("rep");
  const Numbers& out = c.list("out");
  if (!has_entries(b, "rep", repeats, 3) || !has_entries(b, "out", out, 5)) return;
  for (size_t i = 1; i < 4; ++i) {
    if (out[i] % 2 != 0) b.fail(fmt::format("{} channels cannot be halved", out[i]), "use even channels in out");
  }
  TensorId x = image_input(b, c);
  x = conv_norm_activation(b, "conv1", x, out[0], {.kernel = 3, .stride = 2});
  x = max_pool(b, "maxpool", x, pooling(3, 2, 1));
  for (size_t i = 0; i < 3; ++i) {
    const Scope stage(b, fmt::format("stage{}", i + 2));
    for (int64_t j = 0; j < repeats[i]; ++j) x = unit(b, std::to_string(j), x, out[i + 1], j == 0 ? 2 : 1);
  }
  x = conv_norm_activation(b, "conv5", x, out[4], {.kernel = 1});
  x = b.mean(x, {2, 3}, false);
  b.result(Linear(b, "fc", out[4], c.integer("classes"))(x));
}

}  // namespace

Family shufflenet_family() {
  return {
      .name = "shufflenet",
      .description = "ShuffleNet v2 (torchvision)",
      .parameters = with_image_parameters({
          {"rep", Numbers{4, 8, 4}, "units in each of the three stages"},
          {"out", Numbers{24, 116, 232, 464, 1024}, "channels of the stem, the three stages and the last convolution"},
      }),
      .build = build_shufflenet};
}

std::vector<NamedModel> shufflenet_models() {
  return {{"shufflenet_v2_x0_5", "shufflenet", {{"out", Numbers{24, 48, 96, 192, 1024}}}},
          {"shufflenet_v2_x1_0", "shufflenet", {{"out", Numbers{24, 116, 232, 464, 1024}}}},
          {"shufflenet_v2_x1_5", "shufflenet", {{"out", Numbers{24, 176, 352, 704, 1024}}}},
          {"shufflenet_v2_x2_0", "shufflenet", {{"out", Numbers{24, 244, 488, 976, 2048}}}}};
}

}  // namespace forerun::zoo
