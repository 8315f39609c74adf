// The U-Net of denoising diffusion models (Ho et al. 2020) in the form of UNet2DModel of the diffusers library (0.42):
// residual blocks with group norms that are told the step of the noising process, attention at some of the levels. With
// `text_width` that of UNet2DConditionModel (Stable Diffusion): there transformer blocks attend to pixels and to a text.
//
// The loss is the mean squared error of the noise. 35,746,307 parameters for the published model of CIFAR-10,
// 113,673,219 for those of 256 x 256 images, 859,520,964 for Stable Diffusion 1. Left out: other kinds of blocks, steps as
// learned or Fourier features, scales and shifts in place of added steps, several transformer blocks a level (SDXL).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "zoo/attention_layers.h"
#include "zoo/diffusion_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct DdpmOptions {
  int64_t steps_width;  // of what blocks are told of the step
  int64_t groups;
  int64_t head;  // width of attention heads; 0: one head of all channels
  int64_t padding;
  double eps, dropout;
  int64_t text_width;          // 0: there is no text
  std::vector<int64_t> heads;  // of attention beside a text, by level
  bool linear;                 // transformer blocks stand between linear layers, not convolutions
};

TensorId silu(ForwardBuilder& b, TensorId x) { return b.unary("aten.silu.default", x); }

class GroupNorm {
 public:
  GroupNorm(ForwardBuilder& b, std::string_view name, int64_t channels, const DdpmOptions& o)
      : b_(b), path_(b.path_of(name)), groups_(o.groups), eps_(o.eps) {
    const Scope scope(b, name);
    weight_ = b.parameter("weight", {channels});
    bias_ = b.parameter("bias", {channels});
    if (channels % groups_ != 0) {
      b.fail(fmt::format("{} groups do not divide {} channels", groups_, channels), "choose widths they divide");
    }
  }
  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    return b_.group_norm(x, weight_, bias_, groups_, eps_);
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t groups_;
  double eps_;
  TensorId weight_, bias_;
};

constexpr Conv2dOptions kSameSize = {.kernel = 3, .padding = 1};

class ResidualBlock {
 public:
  ResidualBlock(ForwardBuilder& b, int64_t in, int64_t out, const DdpmOptions& o)
      : b_(b),
        path_(b.path_of("")),
        norm1_(b, "norm1", in, o),
        conv1_(b, "conv1", in, out, kSameSize),
        step_(b, "time_emb_proj", o.steps_width, out),
        norm2_(b, "norm2", out, o),
        dropout_(b, "dropout", o.dropout),
        conv2_(b, "conv2", out, out, kSameSize) {
    if (in != out) shortcut_.emplace(b, "conv_shortcut", in, out, Conv2dOptions{.kernel = 1});
  }

  TensorId operator()(TensorId x, TensorId step) const {
    const Scope scope(b_, path_, Scope::absolute);
    TensorId y = conv1_(activated(norm1_(x)));
    const TensorId told = step_(activated(step));
    y = b_.add(y, b_.unsqueeze(b_.unsqueeze(told, 2), 3));
    y = conv2_(dropout_(activated(norm2_(y))));
    if (shortcut_) x = (*shortcut_)(b_.contiguous(x));
    return b_.unary("aten.div.Tensor", b_.add(x, y), {{"other", 1.0}});
  }

 private:
  [[nodiscard]] TensorId activated(TensorId x) const {
    const Scope scope(b_, "nonlinearity");
    return silu(b_, x);
  }

  ForwardBuilder& b_;
  std::string path_;
  GroupNorm norm1_;
  Conv2d conv1_;
  Linear step_;
  GroupNorm norm2_;
  Dropout dropout_;
  Conv2d conv2_;
  std::optional<Conv2d> shortcut_;
};

class PixelAttention {
 public:
  PixelAttention(ForwardBuilder& b, int64_t channels, const DdpmOptions& o)
      : b_(b),
        path_(b.path_of("")),
        channels_(channels),
        head_(o.head > 0 ? o.head : channels),
        norm_(b, "group_norm", channels, o),
        query_(b, "to_q", channels, channels),
        key_(b, "to_k", channels, channels),
        value_(b, "to_v", channels, channels),
        out_(b, "to_out.0", channels, channels) {
    if (channels % head_ != 0) {
      b.fail(fmt::format("attention heads of {} do not divide {} channels", head_, channels), "choose a divisor");
    }
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const Shape shape = {b_.extent(x, 0), channels_, b_.extent(x, 2), b_.extent(x, 3)};
    TensorId y = b_.transpose(b_.view(x, {shape[0], shape[1], -1}), 1, 2);
    y = b_.transpose(norm_(b_.transpose(y, 1, 2)), 1, 2);
    const TensorId query = query_(y);
    const TensorId key = key_(y);
    const TensorId value = value_(y);
    y = b_.attention(split_heads(b_, query, head_), split_heads(b_, key, head_), split_heads(b_, value, head_));
    y = out_(b_.reshape(b_.transpose(y, 1, 2), {shape[0], -1, channels_}));
    y = b_.reshape(b_.transpose(y, -1, -2), shape);
    return b_.unary("aten.div.Tensor", b_.add(y, x), {{"other", 1.0}});
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t channels_, head_;
  GroupNorm norm_;
  Linear query_, key_, value_, out_;
};

// Attention of pixels to pixels, or to a text of another width.
class TextAttention {
 public:
  TextAttention(ForwardBuilder& b, std::string_view name, int64_t width, int64_t context, int64_t heads)
      : b_(b), path_(b.path_of(name)), head_(width / heads) {
    const Scope scope(b, name);
    query_.emplace(b, "to_q", width, width, false);
    key_.emplace(b, "to_k", context, width, false);
    value_.emplace(b, "to_v", context, width, false);
    out_.emplace(b, "to_out.0", width, width);
  }
  TensorId operator()(TensorId x, TensorId context) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId query = (*query_)(x);
    const TensorId key = (*key_)(context);
    const TensorId value = (*value_)(context);
    const TensorId y =
        b_.attention(split_heads(b_, query, head_), split_heads(b_, key, head_), split_heads(b_, value, head_));
    const TensorId merged = b_.reshape(b_.transpose(y, 1, 2), {b_.extent(x, 0), -1, b_.extent(x, 2)});
    return b_.unary("aten.div.Tensor", (*out_)(merged), {{"other", 1.0}});
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t head_;
  std::optional<Linear> query_, key_, value_, out_;
};

// A transformer block over the pixels, between two projections.
class PixelTransformer {
 public:
  PixelTransformer(ForwardBuilder& b, int64_t channels, int64_t heads, const DdpmOptions& o)
      : b_(b), path_(b.path_of("")), channels_(channels), norm_(b, "norm", channels, with_eps(o)) {
    constexpr int64_t kWider = 4;
    project(b, "proj_in", o.linear, in_conv_, in_linear_);
    {
      const Scope scope(b, "transformer_blocks.0");
      norm1_.emplace(b, "norm1", channels);
      pixels_.emplace(b, "attn1", channels, channels, heads);
      norm2_.emplace(b, "norm2", channels);
      text_.emplace(b, "attn2", channels, o.text_width, heads);
      norm3_.emplace(b, "norm3", channels);
      gated_.emplace(b, "ff.net.0.proj", channels, 2 * kWider * channels);
      narrow_.emplace(b, "ff.net.2", kWider * channels, channels);
    }
    project(b, "proj_out", o.linear, out_conv_, out_linear_);
  }

  TensorId operator()(TensorId image, TensorId text) const {
    const Scope scope(b_, path_, Scope::absolute);
    const Shape shape = {b_.extent(image, 0), b_.extent(image, 2), b_.extent(image, 3), channels_};
    TensorId x = norm_(image);
    if (in_conv_) x = (*in_conv_)(x);
    x = b_.reshape(b_.permute(x, {0, 2, 3, 1}), {shape[0], shape[1] * shape[2], channels_});
    if (in_linear_) x = (*in_linear_)(x);
    x = block(x, text);
    if (out_linear_) x = (*out_linear_)(x);
    x = b_.contiguous(b_.permute(b_.reshape(x, shape), {0, 3, 1, 2}));
    if (out_conv_) x = (*out_conv_)(x);
    return b_.add(x, image);
  }

 private:
  static DdpmOptions with_eps(DdpmOptions o) {
    o.eps = 1e-6;
    return o;
  }
  void project(ForwardBuilder& b, std::string_view name, bool linear, std::optional<Conv2d>& conv,
               std::optional<Linear>& plain) const {
    if (linear) {
      plain.emplace(b, name, channels_, channels_);
    } else {
      conv.emplace(b, name, channels_, channels_, Conv2dOptions{.kernel = 1});
    }
  }
  [[nodiscard]] TensorId block(TensorId x, TensorId text) const {
    const Scope scope(b_, "transformer_blocks.0");
    const TensorId own = (*norm1_)(x);
    x = b_.add((*pixels_)(own, own), x);
    x = b_.add((*text_)((*norm2_)(x), text), x);
    const std::vector<TensorId> halves = b_.chunk((*gated_)((*norm3_)(x)), 2, -1);
    return b_.add((*narrow_)(b_.mul(halves[0], b_.gelu(halves[1]))), x);
  }

  ForwardBuilder& b_;
  std::string path_;
  int64_t channels_;
  GroupNorm norm_;
  std::optional<Conv2d> in_conv_, out_conv_;
  std::optional<Linear> in_linear_, out_linear_;
  std::optional<LayerNorm> norm1_, norm2_, norm3_;
  std::optional<TextAttention> pixels_, text_;
  std::optional<Linear> gated_, narrow_;
};

// Residual blocks, each with attention where the level has it, and what changes the size afterwards.
struct Level {
  std::vector<PixelAttention> attentions;      // without a text
  std::vector<PixelTransformer> transformers;  // beside one
  std::vector<ResidualBlock> blocks;
  std::optional<Conv2d> resample;
};

// Attentions are registered first.
void add_attentions(ForwardBuilder& b, Level& level, int64_t count, int64_t channels, int64_t heads,
                    const DdpmOptions& o) {
  for (int64_t i = 0; i < count; ++i) {
    const Scope scope(b, fmt::format("attentions.{}", i));
    if (o.text_width > 0) {
      level.transformers.emplace_back(b, channels, heads, o);
    } else {
      level.attentions.emplace_back(b, channels, o);
    }
  }
}
void add_block(ForwardBuilder& b, Level& level, int64_t in, int64_t out, const DdpmOptions& o) {
  const Scope scope(b, fmt::format("resnets.{}", level.blocks.size()));
  level.blocks.emplace_back(b, in, out, o);
}

// What blocks are told.
struct Told {
  TensorId step;
  std::optional<TensorId> text;
};

class DdpmUnet {
 public:
  DdpmUnet(ForwardBuilder& b, const Configuration& c, const DdpmOptions& o)
      : b_(b),
        o_(o),
        widths_(c.list("widths")),
        first_(b, "conv_in", c.integer("channels"), widths_.front(), kSameSize),
        step1_(b, "time_embedding.linear_1", widths_.front(), o.steps_width),
        step2_(b, "time_embedding.linear_2", o.steps_width, o.steps_width) {
    if (c.integer("class_embeddings") > 0) {
      classes_.emplace(b, "class_embedding", c.integer("class_embeddings"), o.steps_width);
    }
    const int64_t layers = c.integer("layers");
    register_down(c.text("down"), layers);
    register_up(c.text("up"), layers + 1);
    const Scope scope(b, "mid_block");
    add_attentions(b, middle_, 1, widths_.back(), o.heads.back(), o);
    for (int i = 0; i < 2; ++i) add_block(b, middle_, widths_.back(), widths_.back(), o);
  }

  [[nodiscard]] bool takes_labels() const { return classes_.has_value(); }

  // What blocks are told: of the step, and of the class.
  TensorId condition(TensorId waves, std::optional<TensorId> labels) const {
    TensorId x = step1_(waves);
    {
      const Scope scope(b_, "time_embedding.act");
      x = silu(b_, x);
    }
    x = step2_(x);
    return classes_ ? b_.add(x, (*classes_)(*labels)) : x;
  }

  TensorId operator()(TensorId x, const Told& told) const {
    x = first_(x);
    std::vector<TensorId> skips = {x};
    for (size_t i = 0; i < down_.size(); ++i) {
      const Scope scope(b_, fmt::format("down_blocks.{}", i));
      for (size_t k = 0; k < down_[i].blocks.size(); ++k) {
        x = run(down_[i], k, x, told);
        skips.push_back(x);
      }
      if (!down_[i].resample) continue;
      const Scope resample(b_, "downsamplers.0");
      x = (*down_[i].resample)(o_.padding == 0 ? b_.pad(x, {0, 1, 0, 1}) : x);
      skips.push_back(x);
    }
    {
      const Scope scope(b_, "mid_block");
      x = run(middle_, 0, x, told);
      x = middle_.blocks[1](x, told.step);
    }
    for (size_t i = 0; i < up_.size(); ++i) {
      const Scope scope(b_, fmt::format("up_blocks.{}", i));
      for (size_t k = 0; k < up_[i].blocks.size(); ++k) {
        x = b_.cat({x, skips.back()}, 1);
        skips.pop_back();
        x = run(up_[i], k, x, told);
      }
      if (up_[i].resample) x = twice_as_large(*up_[i].resample, x);
    }
    return x;
  }

 private:
  // A letter for each level: a with attention, d without.
  void register_down(const std::string& kinds, int64_t layers) {
    int64_t channels = widths_.front();
    skip_widths_.push_back(channels);
    for (size_t i = 0; i < widths_.size(); ++i) {
      const Scope scope(b_, fmt::format("down_blocks.{}", i));
      Level& level = down_.emplace_back();
      add_attentions(b_, level, kinds[i] == 'a' ? layers : 0, widths_[i], o_.heads[i], o_);
      for (int64_t k = 0; k < layers; ++k) {
        add_block(b_, level, channels, widths_[i], o_);
        channels = widths_[i];
        skip_widths_.push_back(channels);
      }
      if (i + 1 == widths_.size()) continue;
      level.resample.emplace(b_, "downsamplers.0.conv", channels, channels,
                             Conv2dOptions{.kernel = 3, .stride = 2, .padding = o_.padding});
      skip_widths_.push_back(channels);
    }
  }

  void register_up(const std::string& kinds, int64_t layers) {
    int64_t channels = widths_.back();
    for (size_t i = 0; i < widths_.size(); ++i) {
      const Scope scope(b_, fmt::format("up_blocks.{}", i));
      const size_t opposite = widths_.size() - 1 - i;
      const int64_t width = widths_[opposite];
      Level& level = up_.emplace_back();
      add_attentions(b_, level, kinds[i] == 'a' ? layers : 0, width, o_.heads[opposite], o_);
      for (int64_t k = 0; k < layers; ++k) {
        add_block(b_, level, channels + skip_widths_.back(), width, o_);
        skip_widths_.pop_back();
        channels = width;
      }
      if (i + 1 < widths_.size()) level.resample.emplace(b_, "upsamplers.0.conv", width, width, kSameSize);
    }
  }

  static TensorId run(const Level& level, size_t k, TensorId x, const Told& told) {
    x = level.blocks[k](x, told.step);
    if (!level.transformers.empty()) return level.transformers[k](x, *told.text);
    return level.attentions.empty() ? x : level.attentions[k](x);
  }

  // The library copies large inputs, for a kernel that once failed on them.
  TensorId twice_as_large(const Conv2d& conv, TensorId x) const {
    constexpr int64_t kLargeBatch = 64;
    constexpr int64_t kManyElements = int64_t{1} << 30;
    const Scope scope(b_, "upsamplers.0");
    const Shape shape = {b_.extent(x, 0), b_.extent(x, 1), b_.extent(x, 2), b_.extent(x, 3)};
    if (shape[0] >= kLargeBatch || shape[0] * shape[1] * shape[2] * shape[3] > kManyElements) x = b_.contiguous(x);
    return conv(b_.upsample_nearest2d(x, 2 * shape[2], 2 * shape[3]));
  }

  ForwardBuilder& b_;
  DdpmOptions o_;
  std::vector<int64_t> widths_;
  Conv2d first_;
  Linear step1_, step2_;
  std::optional<Embedding> classes_;
  std::vector<Level> down_, up_;
  Level middle_;
  std::vector<int64_t> skip_widths_;
};

bool are_kinds(ForwardBuilder& b, const Configuration& c, const char* name) {
  const std::string& kinds = c.text(name);
  if (kinds.size() == c.list("widths").size() && kinds.find_first_not_of("ad") == std::string::npos) return true;
  b.fail(fmt::format("{} is '{}'", name, kinds.substr(0, 80)),
         "give a letter for each of the widths: a with attention, d without");
  return false;
}

// Of attention beside a text, for each level; empty where there is none to be told.
std::vector<int64_t> heads_by_level(const Configuration& c) {
  const std::vector<int64_t>& heads = c.list("heads");
  const size_t levels = c.list("widths").size();
  return heads.size() == 1 ? std::vector<int64_t>(levels, heads.front()) : heads;
}

bool heads_make_sense(ForwardBuilder& b, const Configuration& c) {
  const std::vector<int64_t> heads = heads_by_level(c);
  const std::vector<int64_t>& widths = c.list("widths");
  if (heads.size() != widths.size()) {
    b.fail(fmt::format("{} numbers of heads for {} widths", heads.size(), widths.size()), "give one, or one for each");
    return false;
  }
  for (size_t i = 0; c.integer("text_width") > 0 && i < heads.size(); ++i) {
    if (heads[i] < 1 || widths[i] % heads[i] != 0) {
      b.fail(fmt::format("{} heads do not divide {} channels", heads[i], widths[i]), "choose a divisor");
      return false;
    }
  }
  return true;
}

bool ddpm_unet_makes_sense(ForwardBuilder& b, const Configuration& c) {
  constexpr size_t kMostLevels = 12;
  const auto& widths = c.list("widths");
  if (!within(b, c, {"batch", "image", "channels", "out_channels", "groups"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) ||
      !within(b, c, {"head", "padding", "class_embeddings", "steps_width", "wave_shift", "text_width"}, 0) ||
      !within(b, c, {"text_length"}) || !is_dropout(b, c.real("dropout"))) {
    return false;
  }
  if (widths.size() > kMostLevels || std::any_of(widths.begin(), widths.end(), [](int64_t w) { return w < 1; }) ||
      widths.front() % 2 != 0) {
    b.fail("the widths make no model", fmt::format("give 1 to {} of them, the first of them even", kMostLevels));
    return false;
  }
  if (!are_kinds(b, c, "down") || !are_kinds(b, c, "up") || !heads_make_sense(b, c)) return false;
  if (c.integer("wave_shift") >= widths.front() / 2) {
    b.fail(fmt::format("a wave shift of {}", c.integer("wave_shift")), "it must be less than half the first width");
    return false;
  }
  const int64_t halvings = int64_t{1} << (widths.size() - 1);
  if (c.integer("image") % halvings == 0) return true;
  b.fail(fmt::format("images of {} cannot be halved {} times", c.integer("image"), widths.size() - 1),
         fmt::format("choose a multiple of {}", halvings));
  return false;
}

void build_ddpm_unet(ForwardBuilder& b, const Configuration& c) {
  if (!ddpm_unet_makes_sense(b, c)) return;
  const int64_t batch = c.integer("batch");
  const int64_t width = c.list("widths").front();
  const int64_t steps_width = c.integer("steps_width");
  const DdpmOptions o = {.steps_width = steps_width > 0 ? steps_width : 4 * width,
                         .groups = c.integer("groups"),
                         .head = c.integer("head"),
                         .padding = c.integer("padding"),
                         .eps = c.real("eps"),
                         .dropout = c.real("dropout"),
                         .text_width = c.integer("text_width"),
                         .heads = heads_by_level(c),
                         .linear = c.flag("linear_projection")};
  const TensorId image = image_input(b, c);
  const TensorId steps = timestep_input(b, batch);
  const DdpmUnet unet(b, c, o);
  const GroupNorm norm(b, "conv_norm_out", width, o);
  const Conv2d out(b, "conv_out", width, c.integer("out_channels"), kSameSize);

  std::optional<TensorId> text;
  if (o.text_width > 0) text = b.input("text", {batch, c.integer("text_length"), o.text_width});
  const TensorId each =
      text ? b.expand(steps, {batch}) : b.mul(steps, b.create("aten.ones.default", {batch}, DType::int64));
  const WaveOptions options = {
      .count = width / 2, .shift = c.integer("wave_shift"), .scaled = true, .swapped = c.flag("cosines_first")};
  const TensorId waves = timestep_waves(b, each, options);
  std::optional<TensorId> labels;
  if (unet.takes_labels()) labels = b.input("labels", {batch}, DType::int64);
  const TensorId told = unet.condition(b.type_as(waves, image), labels);
  const TensorId x = norm(unet(image, {told, text}));
  TensorId activated;
  {
    const Scope scope(b, "conv_act");
    activated = silu(b, x);
  }
  squared_error_result(b, out(activated), "noise");
}

}  // namespace

Family ddpm_unet_family() {
  return {
      .name = "ddpm_unet",
      .description = "U-Net of denoising diffusion models (diffusers), mean squared error of the noise",
      .input = InputKind::image,
      .parameters = {{"widths", std::vector<int64_t>{224, 448, 672, 896}, "channels of each level"},
                     {"layers", 2, "residual blocks of a level on the way down; one more on the way up"},
                     {"down", "daaa", "levels on the way down: a with attention, d without"},
                     {"up", "aaad", "levels on the way up"},
                     {"head", 0, "width of attention heads; 0: one head of all channels"},
                     {"groups", 32, "groups of the norms"},
                     {"eps", 1e-5, "epsilon of the norms"},
                     {"dropout", 0.0, "dropout in residual blocks"},
                     {"padding", 0, "of the convolutions that halve the size; 0: right and bottom alone"},
                     {"steps_width", 0, "width of what is told of the step; 0: 4 times the first level's"},
                     {"wave_shift", 0, "how many frequencies too early the longest wave comes"},
                     {"cosines_first", true, "cosines of the step before its sines"},
                     {"class_embeddings", 0, "classes that images are labelled with; 0: none"},
                     {"text_width", 0, "width of the text's tokens that pixels attend to; 0: there is no text"},
                     {"text_length", 77, "its tokens"},
                     {"heads", std::vector<int64_t>{8}, "of attention beside a text: one for all levels or one each"},
                     {"linear_projection", false, "linear layers around transformer blocks, not convolutions"},
                     {"batch", 32, "images per iteration"},
                     {"channels", 3, "channels of an image"},
                     {"out_channels", 3, "channels of the noise"},
                     {"image", 32, "height and width of an image"}},
      .build = build_ddpm_unet};
}

}  // namespace forerun::zoo
