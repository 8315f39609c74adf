// Swin Transformer, first version: stages of blocks whose attention looks within windows, every second block with
// windows shifted by half, and patch merging between stages.
//
// Source: torchvision.models.SwinTransformer. Left out: dropout (zero by default, so nothing is dispatched) and
// stochastic depth. The mask of shifted windows is made anew in each forward pass, as the source does.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/attention_layers.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

// Which windowed pixels may not see each other after the roll: [windows, window^2, window^2] of 0 and -100.
TensorId shift_mask(ForwardBuilder& b, TensorId x, int64_t side, int64_t window, int64_t shift) {
  const TensorId regions = b.opaque("aten.new_zeros.default", {x}, {{{side, side}, DType::float32}},
                                    {{"size", Shape{side, side}}, {"pin_memory", false}})
                               .front();
  const std::pair<int64_t, int64_t> bands[] = {{0, -window}, {-window, -shift}, {-shift, kToEnd}};
  for (const auto& [top, bottom] : bands) {
    for (const auto& [left, right] : bands) {
      const TensorId number = b.create("aten.lift_fresh.default", {}, DType::float32);
      const TensorId rows = b.slice(regions, 0, top, bottom);
      const TensorId area = b.slice(rows, 1, left, right);
      b.binary("aten.fill_.Tensor", area, number);
    }
  }
  const int64_t count = side / window;
  TensorId mask = b.view(regions, {count, window, count, window});
  mask = b.reshape(b.permute(mask, {0, 2, 1, 3}), {count * count, window * window});
  const TensorId across = b.unsqueeze(mask, 1);
  const TensorId down = b.unsqueeze(mask, 2);
  const TensorId difference = b.binary("aten.sub.Tensor", across, down);
  const std::vector<std::pair<Shape, DType>> like = {{b.shape(difference), DType::float32}};
  const TensorId apart = b.unary("aten.ne.Scalar", difference, {{"other", int64_t{0}}});
  const TensorId hidden = b.opaque("aten.masked_fill.Scalar", {difference, apart}, like, {{"value", -100.0}}).front();
  const TensorId together = b.unary("aten.eq.Scalar", difference, {{"other", int64_t{0}}});
  return b.opaque("aten.masked_fill.Scalar", {hidden, together}, like, {{"value", 0.0}}).front();
}

class WindowAttention {
 public:
  WindowAttention(ForwardBuilder& b, std::string_view name, int64_t dim, int64_t heads, int64_t window, int64_t shift)
      : b_(b), path_(b.path_of(name)), dim_(dim), heads_(heads), window_(window), shift_(shift) {
    const Scope scope(b, name);
    const int64_t pixels = window * window;
    table_ = b.parameter("relative_position_bias_table", {(2 * window - 1) * (2 * window - 1), heads});
    qkv_weight_ = b.parameter("qkv.weight", {3 * dim, dim});
    qkv_bias_ = b.parameter("qkv.bias", {3 * dim});
    out_weight_ = b.parameter("proj.weight", {dim, dim});
    out_bias_ = b.parameter("proj.bias", {dim});
    position_ = b.buffer("relative_position_index", {pixels * pixels}, DType::int64);
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId bias = position_bias();
    const int64_t batch = b_.extent(x, 0);
    const int64_t side = b_.extent(x, 1);
    const int64_t more = (window_ - side % window_) % window_;
    const int64_t padded = side + more;
    const int64_t shift = window_ >= padded ? 0 : shift_;
    const int64_t count = padded / window_;
    const int64_t pixels = window_ * window_;
    x = b_.pad(x, {0, 0, 0, more, 0, more});
    if (shift > 0) x = b_.roll(x, {-shift, -shift}, {1, 2});
    x = b_.view(x, {batch, count, window_, count, window_, dim_});
    x = b_.reshape(b_.permute(x, {0, 1, 3, 2, 4, 5}), {batch * count * count, pixels, dim_});
    x = attend(x, bias, padded, shift);
    x = b_.view(x, {batch, count, count, window_, window_, dim_});
    x = b_.reshape(b_.permute(x, {0, 1, 3, 2, 4, 5}), {batch, padded, padded, dim_});
    if (shift > 0) x = b_.roll(x, {shift, shift}, {1, 2});
    x = more > 0 ? b_.slice(b_.slice(x, 1, 0, side), 2, 0, side) : alias(b_, x);
    return b_.contiguous(x);
  }

 private:
  [[nodiscard]] TensorId position_bias() const {
    const int64_t pixels = window_ * window_;
    TensorId bias = b_.index(table_, {position_}, {pixels * pixels, heads_});
    bias = b_.view(bias, {pixels, pixels, -1});
    return b_.unsqueeze(b_.contiguous(b_.permute(bias, {2, 0, 1})), 0);
  }

  // Attention within windows [windows, pixels, dim] of an image of `side`; if shifted, masked by the image's regions.
  [[nodiscard]] TensorId attend(TensorId x, TensorId bias, int64_t side, int64_t shift) const {
    const int64_t windows = b_.extent(x, 0);
    const int64_t pixels = window_ * window_;
    const int64_t head = dim_ / heads_;
    TensorId qkv = b_.linear(x, qkv_weight_, qkv_bias_);
    qkv = b_.permute(b_.reshape(qkv, {windows, pixels, 3, heads_, head}), {2, 0, 3, 1, 4});
    TensorId query = b_.select(qkv, 0, 0);
    const TensorId key = b_.select(qkv, 0, 1);
    const TensorId value = b_.select(qkv, 0, 2);
    query = b_.mul_scalar(query, std::pow(static_cast<double>(head), -0.5));
    TensorId scores = b_.matmul(query, b_.transpose(key, -2, -1));
    scores = b_.add(scores, bias);
    if (shift > 0) {
      TensorId mask = shift_mask(b_, x, side, window_, shift);
      const int64_t per_image = b_.extent(mask, 0);
      scores = b_.view(scores, {windows / per_image, per_image, heads_, pixels, pixels});
      mask = b_.unsqueeze(b_.unsqueeze(mask, 1), 0);
      scores = b_.view(b_.add(scores, mask), {-1, heads_, pixels, pixels});
    }
    scores = b_.softmax(scores, -1);
    x = b_.transpose(b_.matmul(scores, value), 1, 2);
    x = b_.reshape(x, {windows, pixels, dim_});
    return b_.linear(x, out_weight_, out_bias_);
  }

  ForwardBuilder& b_;
  std::string path_;
  int64_t dim_, heads_, window_, shift_;
  TensorId table_, qkv_weight_, qkv_bias_, out_weight_, out_bias_, position_;
};

class SwinBlock {
 public:
  SwinBlock(ForwardBuilder& b, int64_t dim, int64_t heads, int64_t window, int64_t shift, int64_t mlp)
      : b_(b),
        path_(b.path_of("")),
        norm1_(b, "norm1", dim),
        attention_(b, "attn", dim, heads, window, shift),
        norm2_(b, "norm2", dim),
        mlp_(b, dim, mlp) {}

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.add(x, attention_(norm1_(x)));
    return b_.add(x, mlp_(norm2_(x)));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  LayerNorm norm1_;
  WindowAttention attention_;
  LayerNorm norm2_;
  Mlp mlp_;
};

// Halves the side and doubles the width.
class PatchMerging {
 public:
  PatchMerging(ForwardBuilder& b, std::string_view name, int64_t dim)
      : b_(b),
        path_(b.path_of(name)),
        reduction_(b, std::string(name) + ".reduction", 4 * dim, 2 * dim, false),
        norm_(b, std::string(name) + ".norm", 4 * dim) {}

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.pad(x, {0, 0, 0, b_.extent(x, 2) % 2, 0, b_.extent(x, 1) % 2});
    std::vector<TensorId> parts;
    for (const auto& [row, column] : {std::pair<int64_t, int64_t>{0, 0}, {1, 0}, {0, 1}, {1, 1}}) {
      parts.push_back(b_.slice(b_.slice(x, 1, row, kToEnd, 2), 2, column, kToEnd, 2));
    }
    return reduction_(norm_(b_.cat(parts, -1)));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  Linear reduction_;
  LayerNorm norm_;
};

// The heads of the first stage: where none are given, 32 channels each, or 16 for widths that 32 does not divide.
int64_t first_heads(const Configuration& c) {
  const int64_t dim = c.integer("dim");
  if (c.integer("heads") > 0) return c.integer("heads");
  return dim % 32 == 0 ? dim / 32 : dim / 16;
}

bool swin_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "channels", "image", "classes", "patch"}) || !within(b, c, {"mlp_ratio"}, 1, 1024) ||
      !within(b, c, {"window"}, 2, 256) || !within(b, c, {"dim"}, 16, 1 << 20) ||
      !within(b, c, {"heads"}, 0, 1 << 20) || !heads_divide(b, first_heads(c), c.integer("dim"))) {
    return false;
  }
  const auto& depths = c.list("depths");
  if (depths.empty() || depths.size() > 8) {
    b.fail(fmt::format("depths has {} entries", depths.size()), "give depths of one to eight stages");
    return false;
  }
  for (const int64_t depth : depths) {
    if (depth >= 1 && depth <= kMostLayers) continue;
    b.fail(fmt::format("a stage of {} blocks", depth), fmt::format("use 1 to {} blocks", kMostLayers));
    return false;
  }
  return true;
}

void build_swin(ForwardBuilder& b, const Configuration& c) {
  if (!swin_makes_sense(b, c)) return;
  const auto& depths = c.list("depths");
  const int64_t patch = c.integer("patch");
  const int64_t window = c.integer("window");
  int64_t dim = c.integer("dim");
  const TensorId image = image_input(b, c);
  const Conv2d embed(b, "features.0.0", c.integer("channels"), dim, {.kernel = patch, .stride = patch});
  const LayerNorm embed_norm(b, "features.0.2", dim);
  std::vector<std::vector<SwinBlock>> stages(depths.size());
  std::vector<PatchMerging> merges;
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    const int64_t heads = first_heads(c) << stage;
    for (int64_t i = 0; i < depths[stage]; ++i) {
      const Scope scope(b, fmt::format("features.{}.{}", 2 * stage + 1, i));
      stages[stage].emplace_back(b, dim, heads, window, i % 2 == 0 ? 0 : window / 2, dim * c.integer("mlp_ratio"));
    }
    if (stage + 1 < depths.size()) {
      merges.emplace_back(b, fmt::format("features.{}", 2 * stage + 2), dim);
      dim *= 2;
    }
  }
  const LayerNorm norm(b, "norm", dim);
  const Linear head(b, "head", dim, c.integer("classes"));

  const auto inside = [&b](const char* module, auto&& call) {
    const Scope scope(b, module);
    return call();
  };
  TensorId x = embed(image);
  x = embed_norm(inside("features.0.1", [&] { return b.permute(x, {0, 2, 3, 1}); }));
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (const SwinBlock& block : stages[stage]) x = block(x);
    if (stage < merges.size()) x = merges[stage](x);
  }
  x = norm(x);
  x = inside("permute", [&] { return b.permute(x, {0, 3, 1, 2}); });
  x = inside("avgpool", [&] { return b.adaptive_avg_pool2d(x, {1, 1}); });
  x = inside("flatten", [&] { return b.flatten(x, 1); });
  b.result(head(x));
}

}  // namespace

Family swin_family() {
  return {.name = "swin",
          .description = "Swin Transformer, first version (torchvision)",
          .input = InputKind::image,
          .parameters = with_image_parameters(
              {{"patch", 4, "height and width of a patch"},
               {"dim", 96, "width of the first stage; doubles with each"},
               {"depths", std::vector<int64_t>{2, 2, 6, 2}, "blocks of each stage"},
               {"heads", 0, "attention heads of the first stage, doubling with each; 0: of 32 channels"},
               {"window", 7, "height and width of a window"},
               {"mlp_ratio", 4, "width of the feed-forward layers over that of the stage"}}),
          .build = build_swin};
}

std::vector<NamedModel> swin_models() {
  return {{"swin_t", "swin", {}},
          {"swin_s", "swin", {{"depths", std::vector<int64_t>{2, 2, 18, 2}}}},
          {"swin_b", "swin", {{"dim", 128}, {"depths", std::vector<int64_t>{2, 2, 18, 2}}}}};
}

}  // namespace forerun::zoo
