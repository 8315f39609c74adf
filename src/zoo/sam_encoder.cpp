// The image encoder of Segment Anything: a vision transformer with windowed and global attention and relative positions,
// and a neck of two convolutions.
//
// Source: SamVisionModel of transformers 5.22, sdpa attention, images of the size that the position table is made for. The
// loss is the mean squared error of its features against given ones, as where an encoder is distilled or adapted.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct SamOptions {
  int64_t hidden, intermediate, heads;
  double eps;
  bool qkv_bias, relative;
  std::string activation;
};

class SamLayer {
 public:
  // `side`: height and width of what is attended to; `window`: of windows, 0: all of it.
  SamLayer(ForwardBuilder& b, const SamOptions& o, int64_t side, int64_t window)
      : b_(b), path_(b.path_of("")), o_(o), window_(window), norm1_(b, "layer_norm1", o.hidden, o.eps) {
    const int64_t reach = 2 * (window > 0 ? window : side) - 1;
    if (o.relative) {
      heights_ = b.parameter("attn.rel_pos_h", {reach, o.hidden / o.heads});
      widths_ = b.parameter("attn.rel_pos_w", {reach, o.hidden / o.heads});
    }
    qkv_.emplace(b, "attn.qkv", o.hidden, 3 * o.hidden, o.qkv_bias);
    projection_.emplace(b, "attn.proj", o.hidden, o.hidden);
    norm2_.emplace(b, "layer_norm2", o.hidden, o.eps);
    up_.emplace(b, "mlp.lin1", o.hidden, o.intermediate);
    down_.emplace(b, "mlp.lin2", o.intermediate, o.hidden);
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t side = b_.extent(x, 1);
    TensorId y = norm1_(x);
    y = window_ > 0 ? joined(attend(windows_of(y)), side) : attend(y);
    x = b_.add(x, y);
    return b_.add(x, feed_forward((*norm2_)(x)));
  }

 private:
  [[nodiscard]] int64_t windows_along(int64_t side) const { return (side + window_ - 1) / window_; }

  // [batch, side, side, hidden] -> [windows, window, window, hidden], padded.
  [[nodiscard]] TensorId windows_of(TensorId x) const {
    const int64_t side = b_.extent(x, 1);
    const int64_t count = windows_along(side);
    const int64_t added = count * window_ - side;
    x = b_.pad(x, {0, 0, 0, added, 0, added});
    x = b_.reshape(x, {b_.extent(x, 0), count, window_, count, window_, o_.hidden});
    x = b_.contiguous(b_.permute(x, {0, 1, 3, 2, 4, 5}));
    return b_.reshape(x, {-1, window_, window_, o_.hidden});
  }

  // And back.
  [[nodiscard]] TensorId joined(TensorId x, int64_t side) const {
    const int64_t count = windows_along(side);
    const int64_t batch = b_.extent(x, 0) / (count * count);
    x = b_.reshape(x, {batch, count, count, window_, window_, o_.hidden});
    x = b_.contiguous(b_.permute(x, {0, 1, 3, 2, 4, 5}));
    x = b_.reshape(x, {batch, count * window_, count * window_, o_.hidden});
    return b_.contiguous(take_first(b_, take_first(b_, x, 1, side), 2, side));
  }

  // x * 1.0 of integers.
  [[nodiscard]] TensorId as_real(TensorId x) const {
    return b_.opaque("aten.mul.Tensor", {x}, {{b_.shape(x), DType::float32}}, {{"other", 1.0}}).front();
  }

  // The rows of a table of relative positions that belong to each query and key: [side, side, head].
  [[nodiscard]] TensorId positions(TensorId table, int64_t side) const {
    const int64_t reach = b_.extent(table, 0);
    TensorId x = b_.transpose(b_.reshape(table, {1, reach, -1}), 1, 2);
    x = b_.unary("aten.upsample_linear1d.default", x, {{"output_size", Shape{reach}}});  // to the size it has
    x = b_.permute(b_.reshape(x, {-1, reach}), {1, 0});
    const TensorId queries = as_real(b_.unsqueeze(arange(b_, side), 1));
    const TensorId keys = as_real(b_.unsqueeze(arange(b_, side), 0));
    const TensorId apart = b_.add_scalar(b_.binary("aten.sub.Tensor", queries, keys), static_cast<double>(side - 1));
    return b_.index(x, {b_.to_dtype(apart, DType::int64)}, {side, side, o_.hidden / o_.heads});
  }

  // einsum of queries [samples, side, side, head] and positions [side, keys, head], along one of the sides.
  [[nodiscard]] TensorId told(TensorId query, TensorId places, bool by_height) const {
    const int64_t samples = b_.extent(query, 0);
    const int64_t side = b_.extent(query, 1);
    const int64_t head = b_.extent(query, 3);
    TensorId p = b_.type_as(places, query);  // einsum runs in the type of products
    TensorId q = b_.permute(b_.unsqueeze(query, 4), {0, 1, 2, 4, 3});
    p = b_.unsqueeze(b_.unsqueeze(p, 3), 4);
    p = b_.permute(p, by_height ? Shape{3, 0, 4, 1, 2} : Shape{3, 4, 0, 1, 2});
    q = b_.reshape(b_.permute(q, by_height ? Shape{1, 0, 2, 4, 3} : Shape{2, 0, 1, 4, 3}),
                   {side, samples * side, head});
    p = b_.reshape(b_.permute(p, by_height ? Shape{1, 4, 3, 0, 2} : Shape{2, 4, 3, 0, 1}), {side, head, side});
    TensorId x = b_.view(b_.bmm(q, p), {side, samples, side, 1, side});
    x = b_.permute(x, by_height ? Shape{1, 0, 2, 4, 3} : Shape{1, 2, 0, 4, 3});
    return b_.reshape(x, {samples, side, side, side});
  }

  [[nodiscard]] TensorId attend(TensorId x) const {
    const Scope scope(b_, "attn");
    const int64_t batch = b_.extent(x, 0);
    const int64_t side = b_.extent(x, 1);
    const int64_t pixels = side * side;
    const int64_t head = o_.hidden / o_.heads;
    TensorId packed = b_.reshape((*qkv_)(x), {batch, pixels, 3, o_.heads, head});
    packed = b_.reshape(b_.permute(packed, {2, 0, 3, 1, 4}), {3, batch * o_.heads, pixels, head});
    const std::vector<TensorId> qkv = b_.unbind(packed, 0);
    if (qkv.size() != 3) return x;  // after an error
    std::optional<TensorId> bias;
    if (o_.relative) {
      const TensorId by_height = positions(heights_, side);
      const TensorId by_width = positions(widths_, side);
      const TensorId query = b_.reshape(qkv[0], {batch * o_.heads, side, side, head});
      const TensorId height = told(query, by_height, true);
      const TensorId width = told(query, by_width, false);
      const TensorId both = b_.add(b_.unsqueeze(height, 4), b_.unsqueeze(width, 3));
      bias = b_.reshape(both, {batch, o_.heads, pixels, pixels});
    }
    const Shape heads = {batch, o_.heads, pixels, head};
    const TensorId query = b_.view(qkv[0], heads);
    const TensorId key = b_.view(qkv[1], heads);
    const TensorId value = b_.view(qkv[2], heads);
    x = b_.attention(query, key, value, {.mask = bias});
    x = b_.permute(b_.view(x, {batch, o_.heads, side, side, head}), {0, 2, 3, 1, 4});
    return (*projection_)(b_.reshape(x, {batch, side, side, o_.hidden}));
  }

  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    const Scope scope(b_, "mlp");
    x = (*up_)(x);
    {
      const Scope activation(b_, "act");
      x = activate(b_, o_.activation, x);
    }
    return (*down_)(x);
  }

  ForwardBuilder& b_;
  std::string path_;
  SamOptions o_;
  int64_t window_;
  LayerNorm norm1_;
  TensorId heights_, widths_;
  std::optional<Linear> qkv_, projection_;
  std::optional<LayerNorm> norm2_;
  std::optional<Linear> up_, down_;
};

bool sam_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c,
              {"batch", "image", "channels", "patch", "hidden", "intermediate", "heads", "out_channels", "window"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !within(b, c, {"trained_image"}, 0) ||
      !heads_divide(b, c.integer("heads"), c.integer("hidden")) || !is_activation(b, c.text("activation"))) {
    return false;
  }
  const std::string& pattern = c.text("pattern");
  if (pattern.empty() || pattern.find_first_not_of("gw") != std::string::npos) {
    b.fail(fmt::format("pattern is '{}'", pattern.substr(0, 80)),
           "give a letter for each layer: g global, w within windows");
    return false;
  }
  if (c.integer("trained_image") > 0 && c.integer("image") != c.integer("trained_image")) {
    b.fail(
        fmt::format("images of {}, where the position table is for {}", c.integer("image"), c.integer("trained_image")),
        "give the config's image_size");
    return false;
  }
  if (c.integer("image") >= c.integer("patch")) return true;
  b.fail("a patch is larger than the image", "choose a smaller patch");
  return false;
}

// A layer norm over the channels of an image.
TensorId channels_normed(ForwardBuilder& b, const LayerNorm& norm, TensorId x) {
  return b.permute(norm(b.permute(x, {0, 2, 3, 1})), {0, 3, 1, 2});
}

void build_sam_encoder(ForwardBuilder& b, const Configuration& c) {
  if (!sam_makes_sense(b, c)) return;
  const SamOptions o = {.hidden = c.integer("hidden"),
                        .intermediate = c.integer("intermediate"),
                        .heads = c.integer("heads"),
                        .eps = c.real("eps"),
                        .qkv_bias = c.flag("qkv_bias"),
                        .relative = c.flag("relative_positions"),
                        .activation = c.text("activation")};
  const int64_t patch = c.integer("patch");
  const int64_t side = c.integer("image") / patch;
  const int64_t out = c.integer("out_channels");
  const TensorId image = image_input(b, c);
  const Scope scope(b, "vision_encoder");
  std::optional<TensorId> places;
  if (c.flag("absolute_positions")) places = b.parameter("pos_embed", {1, side, side, o.hidden});
  const Conv2d projection(b, "patch_embed.projection", c.integer("channels"), o.hidden,
                          {.kernel = patch, .stride = patch});
  const std::string& pattern = c.text("pattern");
  std::vector<SamLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope layer(b, fmt::format("layers.{}", i));
    const bool global = pattern[static_cast<size_t>(i) % pattern.size()] == 'g';
    layers.emplace_back(b, o, side, global ? 0 : c.integer("window"));
  }
  const Conv2d conv1(b, "neck.conv1", o.hidden, out, {.kernel = 1, .bias = false});
  const LayerNorm norm1(b, "neck.layer_norm1", out, 1e-6);
  const Conv2d conv2(b, "neck.conv2", out, out, {.kernel = 3, .padding = 1, .bias = false});
  const LayerNorm norm2(b, "neck.layer_norm2", out, 1e-6);

  TensorId x = b.permute(projection(image), {0, 2, 3, 1});
  if (places) x = b.add(x, *places);
  for (const SamLayer& layer : layers) x = layer(x);
  x = channels_normed(b, norm1, conv1(b.permute(x, {0, 3, 1, 2})));
  squared_error_result(b, channels_normed(b, norm2, conv2(x)), "features");
}

}  // namespace

Family sam_encoder_family() {
  return {.name = "sam_encoder",
          .description = "image encoder of Segment Anything (transformers), mean squared error of its features",
          .input = InputKind::image,
          .parameters = {{"patch", 16, "height and width of a patch"},
                         {"layers", 12, "encoder layers"},
                         {"heads", 12, "attention heads"},
                         {"hidden", 768, "width of the model"},
                         {"intermediate", 3072, "width of the feed-forward layers"},
                         {"out_channels", 256, "channels of the features"},
                         {"window", 14, "patches along a window"},
                         {"pattern", "wwg", "attention of the layers, over and over: g global, w within windows"},
                         {"eps", 1e-6, "epsilon of the norms"},
                         {"activation", "gelu", "activation of the feed-forward layers"},
                         {"qkv_bias", true, "queries, keys and values have biases"},
                         {"absolute_positions", true, "a table of positions is added to the patches"},
                         {"relative_positions", true, "relative positions are added to the scores"},
                         {"trained_image", 0, "image size of the position table; 0: any"},
                         {"batch", 8, "images per iteration"},
                         {"channels", 3, "channels of an image"},
                         {"image", 1024, "height and width of an image"}},
          .build = build_sam_encoder};
}

}  // namespace forerun::zoo
