// Swin as the transformers library has it: attention within windows that every other block shifts, patches merged between
// stages. (swin.cpp is torchvision's.)
//
// Source: SwinForImageClassification of transformers 5.22, sdpa attention: the biases of positions are a mask that is
// trained. Left out: windows that padding fills, absolute positions, dropout outside attention.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/drop_path.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

constexpr int64_t kLargestWindow = 1024;  // its fourth power is the number of biases that are picked

struct SwinBlockOptions {
  int64_t hidden, heads, intermediate;
  int64_t side;           // height and width of the image, in patches
  int64_t window, shift;  // in patches too
  double eps, attention_dropout, drop_path;
  bool qkv_bias;
  std::string activation;
};

// [batch, side, side, width] -> [batch * windows, window, window, width]
TensorId in_windows(ForwardBuilder& b, TensorId x, int64_t window) {
  const Shape s = b.shape(x);
  x = b.view(x, {s[0], s[1] / window, window, s[2] / window, window, s[3]});
  return b.view(b.contiguous(b.transpose(x, 2, 3)), {-1, window, window, s[3]});
}

// and back
TensorId out_of_windows(ForwardBuilder& b, TensorId x, int64_t window, int64_t side) {
  const int64_t width = b.extent(x, 3);
  x = b.view(x, {-1, side / window, side / window, window, window, width});
  return b.view(b.contiguous(b.transpose(x, 2, 3)), {-1, side, side, width});
}

// 0, or far below it between pixels that only the shift brought into one window: [windows, pixels, pixels].
TensorId shifted_window_mask(ForwardBuilder& b, const SwinBlockOptions& o) {
  const TensorId rows = arange(b, o.side);
  const TensorId columns = arange(b, o.side);
  const auto region = [&](TensorId numbers) {
    const auto from = [&](int64_t first) {
      return b.to_dtype(b.unary("aten.ge.Scalar", numbers, {{"other", first}}), DType::int64);
    };
    const TensorId last_window = from(o.side - o.window);
    return b.add(last_window, from(o.side - o.shift));
  };
  const TensorId row = region(rows);
  const TensorId column = region(columns);
  const TensorId tripled = b.unary("aten.mul.Tensor", along(b, row, 1), {{"other", int64_t{3}}});
  const TensorId image = b.to_dtype(b.add(tripled, along(b, column, 2)), DType::float32);
  const TensorId flat = b.view(in_windows(b, image, o.window), {-1, o.window * o.window});
  const TensorId across = b.unsqueeze(flat, 1);
  const TensorId apart = b.binary("aten.sub.Tensor", across, b.unsqueeze(flat, 2));
  const auto filled = [&](TensorId x, const char* where) {
    const TensorId places = b.unary(where, apart, {{"other", int64_t{0}}});
    return b.opaque("aten.masked_fill.Scalar", {x, places}, {{b.shape(x), DType::float32}}).front();
  };
  return filled(filled(apart, "aten.ne.Scalar"), "aten.eq.Scalar");
}

class SwinWindowAttention {
 public:
  SwinWindowAttention(ForwardBuilder& b, const SwinBlockOptions& o)
      : b_(b),
        path_(b.path_of("attention")),
        o_(o),
        query_(b, "attention.q_proj", o.hidden, o.hidden, o.qkv_bias),
        key_(b, "attention.k_proj", o.hidden, o.hidden, o.qkv_bias),
        value_(b, "attention.v_proj", o.hidden, o.hidden, o.qkv_bias),
        out_(b, "attention.o_proj", o.hidden, o.hidden) {
    const Scope scope(b, "attention.relative_position_bias");
    const int64_t distances = 2 * o.window - 1;
    table_ = b.parameter("relative_position_bias_table", {distances * distances, o.heads});
    places_ = b.buffer("relative_position_index", {o.window * o.window * o.window * o.window}, DType::int64);
  }

  // [windows, pixels, hidden]
  TensorId operator()(TensorId x, std::optional<TensorId> mask) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t head = o_.hidden / o_.heads;
    const TensorId query = split_heads(b_, query_(x), head);
    const TensorId key = split_heads(b_, key_(x), head);
    const TensorId value = split_heads(b_, value_(x), head);
    TensorId bias = biases();
    if (mask) bias = b_.add(bias, spread(*mask, b_.extent(x, 0)));
    const AttentionOptions options = {
        .mask = bias, .dropout = o_.attention_dropout, .scale = std::pow(static_cast<double>(head), -0.5)};
    return out_(merge_heads(b_, b_.attention(query, key, value, options)));
  }

 private:
  [[nodiscard]] TensorId biases() const {
    const Scope scope(b_, "relative_position_bias");
    const int64_t pixels = o_.window * o_.window;
    const TensorId taken = b_.index(table_, {places_}, {pixels * pixels, o_.heads});
    const TensorId square = b_.view(taken, {pixels, pixels, -1});
    return b_.unsqueeze(b_.contiguous(b_.permute(square, {2, 0, 1})), 0);
  }

  // The same for every image of the batch.
  [[nodiscard]] TensorId spread(TensorId mask, int64_t windows) const {
    const Shape s = b_.shape(mask);
    const TensorId wide = b_.expand(b_.unsqueeze(b_.unsqueeze(mask, 1), 0), {windows / s[0], -1, -1, -1, -1});
    return b_.reshape(wide, {windows, 1, s[1], s[2]});
  }

  ForwardBuilder& b_;
  std::string path_;
  SwinBlockOptions o_;
  Linear query_, key_, value_, out_;
  TensorId table_, places_;
};

class SwinEncoderBlock {
 public:
  SwinEncoderBlock(ForwardBuilder& b, const SwinBlockOptions& o)
      : b_(b),
        path_(b.path_of("")),
        o_(o),
        attention_(b, o),
        norm1_(b, "layernorm_before", o.hidden, o.eps),
        norm2_(b, "layernorm_after", o.hidden, o.eps),
        up_(b, "mlp.fc1", o.hidden, o.intermediate),
        down_(b, "mlp.fc2", o.intermediate, o.hidden) {}

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.add(x, path_dropped(b_, "drop_path", attend(norm1_(x)), o_.drop_path));
    TensorId y = up_(norm2_(x));
    {
      const Scope activation(b_, "mlp.activation_fn");
      y = activate(b_, o_.activation, y);
    }
    return b_.add(down_(y), x);
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x) const {
    const int64_t batch = b_.extent(x, 0);
    const int64_t window = o_.window;
    TensorId image = b_.pad(b_.view(x, {batch, o_.side, o_.side, o_.hidden}), {0, 0, 0, 0, 0, 0});
    if (o_.shift > 0) image = b_.roll(image, {-o_.shift, -o_.shift}, {1, 2});
    const TensorId windows = b_.view(in_windows(b_, image, window), {-1, window * window, o_.hidden});
    std::optional<TensorId> mask;
    if (o_.shift > 0) mask = shifted_window_mask(b_, o_);
    const TensorId y = b_.view(attention_(windows, mask), {-1, window, window, o_.hidden});
    image = out_of_windows(b_, y, window, o_.side);
    if (o_.shift > 0) image = b_.roll(image, {o_.shift, o_.shift}, {1, 2});
    return b_.view(image, {batch, o_.side * o_.side, o_.hidden});
  }

  ForwardBuilder& b_;
  std::string path_;
  SwinBlockOptions o_;
  SwinWindowAttention attention_;
  LayerNorm norm1_, norm2_;
  Linear up_, down_;
};

// Four neighbours become one patch of twice the width.
class SwinMerging {
 public:
  SwinMerging(ForwardBuilder& b, int64_t hidden)
      : b_(b),
        path_(b.path_of("downsample")),
        reduction_(b, "downsample.reduction", 4 * hidden, 2 * hidden, false),
        norm_(b, "downsample.norm", 4 * hidden) {}

  TensorId operator()(TensorId x, int64_t side) const {
    const Scope scope(b_, path_, Scope::absolute);
    const Shape s = b_.shape(x);
    const TensorId image = b_.view(x, {s[0], side, side, s[2]});
    const auto every_other = [&](int64_t row, int64_t column) {
      return b_.slice(b_.slice(image, 1, row, kToEnd, 2), 2, column, kToEnd, 2);
    };
    std::vector<TensorId> corners;
    for (const int64_t column : {0, 1}) {
      for (const int64_t row : {0, 1}) corners.push_back(every_other(row, column));
    }
    return reduction_(norm_(b_.view(b_.cat(corners, -1), {s[0], -1, 4 * s[2]})));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  Linear reduction_;
  LayerNorm norm_;
};

class SwinStage {
 public:
  SwinStage(ForwardBuilder& b, std::vector<SwinBlockOptions> blocks, bool merges)
      : b_(b), path_(b.path_of("")), side_(blocks.front().side) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Scope scope(b, fmt::format("blocks.{}", i));
      blocks_.emplace_back(b, blocks[i]);
    }
    if (merges) merging_.emplace(b, blocks.front().hidden);
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    for (const SwinEncoderBlock& block : blocks_) x = block(x);
    if (merging_) x = (*merging_)(x, side_);
    const int64_t side = merging_ ? side_ / 2 : side_;
    const TensorId image = b_.view(x, {b_.extent(x, 0), side, side, b_.extent(x, 2)});
    b_.contiguous(b_.permute(image, {0, 3, 1, 2}));  // handed back beside the result, which nobody takes
    return x;
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t side_;
  std::vector<SwinEncoderBlock> blocks_;
  std::optional<SwinMerging> merging_;
};

bool swin_encoder_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "image", "channels", "classes", "patch", "hidden"}) ||
      !within(b, c, {"window"}, 1, kLargestWindow) || !is_activation(b, c.text("activation")) ||
      !is_dropout(b, c.real("attention_dropout")) || !is_dropout(b, c.real("drop_path"))) {
    return false;
  }
  const std::vector<int64_t>& heads = c.list("heads");
  if (heads.size() != c.list("depths").size() || heads.size() > 8) {
    b.fail(fmt::format("heads of {} stages, depths of {}", heads.size(), c.list("depths").size()),
           "name as many, of at most 8 stages");
    return false;
  }
  int64_t side = c.integer("image") / c.integer("patch");
  for (size_t i = 0; i < heads.size(); ++i) {
    if (!heads_divide(b, heads[i], c.integer("hidden") << i)) return false;
    const bool merges = i + 1 < heads.size();
    if (side < 1 || side % c.integer("window") != 0 || (merges && side % 2 != 0)) {
      b.fail(
          fmt::format("stage {} has {} patches a side, which windows of {} do not fill", i, side, c.integer("window")),
          "choose an image size of whole windows in every stage");
      return false;
    }
    side /= 2;
  }
  return true;
}

std::vector<SwinBlockOptions> swin_blocks(const Configuration& c, size_t stage, int64_t side, int64_t first,
                                          int64_t all) {
  const int64_t hidden = c.integer("hidden") << stage;
  const double step = all > 1 ? c.real("drop_path") / static_cast<double>(all - 1) : 0;
  std::vector<SwinBlockOptions> blocks;
  for (int64_t i = 0; i < c.list("depths")[stage]; ++i) {
    const bool shifted = i % 2 == 1 && side > c.integer("window");
    blocks.push_back({.hidden = hidden,
                      .heads = c.list("heads")[stage],
                      .intermediate = static_cast<int64_t>(static_cast<double>(hidden) * c.real("ratio")),
                      .side = side,
                      .window = c.integer("window"),
                      .shift = shifted ? c.integer("window") / 2 : 0,
                      .eps = c.real("eps"),
                      .attention_dropout = c.real("attention_dropout"),
                      .drop_path = step * static_cast<double>(first + i),
                      .qkv_bias = c.flag("qkv_bias"),
                      .activation = c.text("activation")});
  }
  return blocks;
}

void build_swin_encoder(ForwardBuilder& b, const Configuration& c) {
  if (!swin_encoder_makes_sense(b, c)) return;
  const std::vector<int64_t>& depths = c.list("depths");
  int64_t all = 0;
  for (const int64_t depth : depths) all += depth;
  const int64_t patch = c.integer("patch");
  int64_t side = c.integer("image") / patch;
  const TensorId image = image_input(b, c);
  const Conv2d projection(b, "swin.embeddings.patch_embeddings.projection", c.integer("channels"), c.integer("hidden"),
                          {.kernel = patch, .stride = patch});
  const LayerNorm first_norm(b, "swin.embeddings.norm", c.integer("hidden"));
  std::vector<SwinStage> stages;
  int64_t first = 0;
  for (size_t i = 0; i < depths.size(); ++i) {
    const Scope scope(b, fmt::format("swin.encoder.layers.{}", i));
    stages.emplace_back(b, swin_blocks(c, i, side, first, all), i + 1 < depths.size());
    first += depths[i];
    side /= 2;
  }
  const int64_t width = c.integer("hidden") << (depths.size() - 1);
  const LayerNorm last_norm(b, "swin.layernorm", width, c.real("eps"));
  const Linear classifier(b, "classifier", width, c.integer("classes"));

  TensorId x;
  {
    const Scope scope(b, "swin.embeddings.patch_embeddings");
    x = b.transpose(b.flatten(projection(image), 2), 1, 2);
  }
  x = first_norm(x);
  for (const SwinStage& stage : stages) x = stage(x);
  x = last_norm(x);
  {
    const Scope scope(b, "swin");
    x = b.transpose(x, 1, 2);
    {
      const Scope pooler(b, "pooler");
      x = b.squeeze(b.adaptive_avg_pool2d(b.unsqueeze(x, -2), {1, 1}), -2);
    }
    x = b.flatten(x, 1);
  }
  b.result(classifier(x));
}

}  // namespace

Family swin_encoder_family() {
  using List = std::vector<int64_t>;
  return {.name = "swin_encoder",
          .description = "Swin as a classifier (transformers)",
          .input = InputKind::image,
          .parameters = with_image_parameters({{"patch", 4, "height and width of a patch"},
                                               {"depths", List{2, 2, 6, 2}, "blocks in each stage"},
                                               {"heads", List{3, 6, 12, 24}, "attention heads of the stages"},
                                               {"hidden", 96, "width of the first stage; each next has twice as much"},
                                               {"window", 7, "height and width of a window, in patches"},
                                               {"ratio", 4.0, "feed-forward layers are wider by this"},
                                               {"eps", 1e-5, "epsilon of the norms"},
                                               {"activation", "gelu", "activation of the feed-forward layers"},
                                               {"qkv_bias", true, "queries, keys and values have biases"},
                                               {"attention_dropout", 0.0, "dropout in attention"},
                                               {"drop_path", 0.1, "how often the last block is left out"}}),
          .build = build_swin_encoder};
}

}  // namespace forerun::zoo
