// CLIP: an encoder of images and one of texts, and how well each image of a batch fits each text.
//
// Source: CLIPModel of transformers 5.22, sdpa attention, no padding mask, images of the size that the position table is
// made for. The loss is the cross entropy of images over texts; the library's own adds that of texts over images, a few
// small ops more.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct ClipSide {
  int64_t hidden, intermediate, heads, layers;
  double eps, attention_dropout;
  std::string activation;
  bool causal;
};

ClipSide clip_side(const Configuration& c, const std::string& prefix, bool causal) {
  return {.hidden = c.integer(prefix + "hidden"),
          .intermediate = c.integer(prefix + "intermediate"),
          .heads = c.integer(prefix + "heads"),
          .layers = c.integer(prefix + "layers"),
          .eps = c.real(prefix + "eps"),
          .attention_dropout = c.real(prefix + "attention_dropout"),
          .activation = c.text(prefix + "activation"),
          .causal = causal};
}

class ClipLayer {
 public:
  ClipLayer(ForwardBuilder& b, const ClipSide& s)
      : b_(b),
        path_(b.path_of("")),
        side_(s),
        key_(b, "self_attn.k_proj", s.hidden, s.hidden),
        value_(b, "self_attn.v_proj", s.hidden, s.hidden),
        query_(b, "self_attn.q_proj", s.hidden, s.hidden),
        out_(b, "self_attn.out_proj", s.hidden, s.hidden),
        norm1_(b, "layer_norm1", s.hidden, s.eps),
        up_(b, "mlp.fc1", s.hidden, s.intermediate),
        down_(b, "mlp.fc2", s.intermediate, s.hidden),
        norm2_(b, "layer_norm2", s.hidden, s.eps) {}

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.add(x, attend(norm1_(x)));
    TensorId y = up_(norm2_(x));
    {
      const Scope activation(b_, "mlp.activation_fn");
      y = activate(b_, side_.activation, y);
    }
    return b_.add(x, down_(y));
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x) const {
    const Scope scope(b_, "self_attn");
    const int64_t head = side_.hidden / side_.heads;
    TensorId query = query_(x);
    TensorId key = key_(x);
    TensorId value = value_(x);
    query = split_heads(b_, query, head);
    key = split_heads(b_, key, head);
    value = split_heads(b_, value, head);
    const AttentionOptions options = {.mask = {},
                                      .dropout = side_.attention_dropout,
                                      .causal = side_.causal && b_.extent(x, 1) > 1,
                                      .scale = std::pow(static_cast<double>(head), -0.5)};
    return out_(merge_heads(b_, b_.attention(query, key, value, options)));
  }

  ForwardBuilder& b_;
  std::string path_;
  ClipSide side_;
  Linear key_, value_, query_, out_;
  LayerNorm norm1_;
  Linear up_, down_;
  LayerNorm norm2_;
};

std::vector<ClipLayer> clip_layers(ForwardBuilder& b, const ClipSide& side) {
  std::vector<ClipLayer> layers;
  for (int64_t i = 0; i < side.layers; ++i) {
    const Scope scope(b, fmt::format("encoder.layers.{}", i));
    layers.emplace_back(b, side);
  }
  return layers;
}

class ClipText {
 public:
  ClipText(ForwardBuilder& b, const Configuration& c)
      : b_(b),
        path_(b.path_of("")),
        side_(clip_side(c, "text_", true)),
        largest_ends_(c.flag("largest_ends")),
        words_(b, "embeddings.token_embedding", c.integer("vocab"), side_.hidden),
        positions_(b, "embeddings.position_embedding", c.integer("positions"), side_.hidden),
        layers_(clip_layers(b, side_)),
        norm_(b, "final_layer_norm", side_.hidden, side_.eps),
        numbers_(b.buffer("embeddings.position_ids", {1, c.integer("positions")}, DType::int64)) {}

  [[nodiscard]] int64_t width() const { return side_.hidden; }

  // [batch, width], taken where each text ends.
  TensorId operator()(TensorId tokens) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t batch = b_.extent(tokens, 0);
    TensorId x = embedded(b_.view(tokens, {-1, b_.extent(tokens, 1)}));
    for (const ClipLayer& layer : layers_) x = layer(x);
    x = norm_(x);
    const TensorId rows = arange(b_, batch);
    TensorId marks = b_.to_dtype(tokens, DType::int32);  // the largest token number ends a text
    if (!largest_ends_) marks = b_.to_dtype(b_.unary("aten.eq.Scalar", marks), DType::int32);
    const TensorId ends =
        b_.opaque("aten.argmax.default", {marks}, {{{batch}, DType::int64}}, {{"dim", int64_t{-1}}}).front();
    return b_.index(x, {rows, ends}, {batch, side_.hidden});
  }

 private:
  [[nodiscard]] TensorId embedded(TensorId tokens) const {
    const Scope scope(b_, "embeddings");
    const TensorId numbers = take_first(b_, numbers_, 1, b_.extent(tokens, 1));
    const TensorId x = words_(tokens);
    return b_.add(x, positions_(numbers));
  }

  ForwardBuilder& b_;
  std::string path_;
  ClipSide side_;
  bool largest_ends_;
  Embedding words_, positions_;
  std::vector<ClipLayer> layers_;
  LayerNorm norm_;
  TensorId numbers_;
};

class ClipVision {
 public:
  ClipVision(ForwardBuilder& b, const Configuration& c)
      : b_(b),
        path_(b.path_of("")),
        side_(clip_side(c, "", false)),
        class_token_(b.parameter("embeddings.class_embedding", {side_.hidden})) {
    const int64_t patch = c.integer("patch");
    const int64_t patches = c.integer("image") / patch * (c.integer("image") / patch);
    projection_.emplace(b, "embeddings.patch_embedding", c.integer("channels"), side_.hidden,
                        Conv2dOptions{.kernel = patch, .stride = patch, .bias = false});
    positions_.emplace(b, "embeddings.position_embedding", patches + 1, side_.hidden);
    numbers_ = b.buffer("embeddings.position_ids", {1, patches + 1}, DType::int64);
    first_norm_.emplace(b, "pre_layrnorm", side_.hidden, side_.eps);
    layers_ = clip_layers(b, side_);
    last_norm_.emplace(b, "post_layernorm", side_.hidden, side_.eps);
  }

  [[nodiscard]] int64_t width() const { return side_.hidden; }

  TensorId operator()(TensorId image) const {
    const Scope scope(b_, path_, Scope::absolute);
    TensorId x = (*first_norm_)(embedded(image));
    for (const ClipLayer& layer : layers_) x = layer(x);
    return (*last_norm_)(b_.select(x, 1, 0));
  }

 private:
  [[nodiscard]] TensorId embedded(TensorId image) const {
    const Scope scope(b_, "embeddings");
    const TensorId patches = b_.transpose(b_.flatten((*projection_)(image), 2), 1, 2);
    const TensorId first = b_.expand(class_token_, {b_.extent(image, 0), 1, -1});
    const TensorId x = b_.cat({first, patches}, 1);
    return b_.add(x, (*positions_)(numbers_));
  }

  ForwardBuilder& b_;
  std::string path_;
  ClipSide side_;
  TensorId class_token_, numbers_;
  std::optional<Conv2d> projection_;
  std::optional<Embedding> positions_;
  std::vector<ClipLayer> layers_;
  std::optional<LayerNorm> first_norm_, last_norm_;
};

// x over its length, row by row.
TensorId clip_unit(ForwardBuilder& b, TensorId x) {
  const TensorId squares = b.unary("aten.pow.Tensor_Scalar", x, {{"exponent", int64_t{2}}});
  const TensorId sums = b.sum(squares, {-1}, true);
  return b.binary("aten.div.Tensor", x, b.unary("aten.pow.Tensor_Scalar", sums, {{"exponent", 0.5}}));
}

TensorId clip_turned(ForwardBuilder& b, TensorId x) {
  return b.opaque("aten.t.default", {x}, {{{b.extent(x, 1), b.extent(x, 0)}, b.dtype(x)}}).front();
}

bool clip_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c,
              {"batch", "image", "channels", "patch", "hidden", "intermediate", "heads", "vocab", "positions",
               "text_length", "text_hidden", "text_intermediate", "text_heads", "projection"}) ||
      !within(b, c, {"layers", "text_layers"}, 1, kMostLayers) || !within(b, c, {"trained_image"}, 0) ||
      !heads_divide(b, c.integer("heads"), c.integer("hidden")) ||
      !heads_divide(b, c.integer("text_heads"), c.integer("text_hidden")) || !is_activation(b, c.text("activation")) ||
      !is_activation(b, c.text("text_activation")) || !is_dropout(b, c.real("attention_dropout")) ||
      !is_dropout(b, c.real("text_attention_dropout"))) {
    return false;
  }
  if (c.integer("text_length") > c.integer("positions")) {
    b.fail(fmt::format("{} tokens are more than {} positions", c.integer("text_length"), c.integer("positions")),
           "use a shorter text_length or more positions");
    return false;
  }
  if (c.integer("trained_image") > 0 && c.integer("image") != c.integer("trained_image")) {
    b.fail(
        fmt::format("images of {}, where the position table is for {}", c.integer("image"), c.integer("trained_image")),
        "interpolated positions cannot be derived: give the config's image_size");
    return false;
  }
  if (c.integer("image") >= c.integer("patch")) return true;
  b.fail("a patch is larger than the image", "choose a smaller patch");
  return false;
}

void build_clip(ForwardBuilder& b, const Configuration& c) {
  if (!clip_makes_sense(b, c)) return;
  const TensorId image = image_input(b, c);
  const TensorId tokens = b.input("text", {c.integer("batch"), c.integer("text_length")}, DType::int64);
  const TensorId scale = b.parameter("logit_scale", {});
  std::optional<ClipText> text;
  std::optional<ClipVision> vision;
  {
    const Scope scope(b, "text_model");
    text.emplace(b, c);
  }
  {
    const Scope scope(b, "vision_model");
    vision.emplace(b, c);
  }
  const Linear project_image(b, "visual_projection", vision->width(), c.integer("projection"), false);
  const Linear project_text(b, "text_projection", text->width(), c.integer("projection"), false);

  TensorId images = project_image((*vision)(image));
  TensorId texts = project_text((*text)(tokens));
  images = clip_unit(b, images);
  texts = clip_unit(b, texts);
  const TensorId likeness = b.matmul(texts, clip_turned(b, images));
  b.result(clip_turned(b, b.mul(likeness, b.unary("aten.exp.default", scale))));
}

}  // namespace

Family clip_family() {
  return {.name = "clip",
          .description = "CLIP (transformers)",
          .input = InputKind::image,
          .parameters = {{"patch", 32, "height and width of a patch"},
                         {"hidden", 768, "width of the image encoder"},
                         {"intermediate", 3072, "width of its feed-forward layers"},
                         {"layers", 12, "its layers"},
                         {"heads", 12, "its attention heads"},
                         {"eps", 1e-5, "epsilon of its norms"},
                         {"activation", "quick_gelu", "activation of its feed-forward layers"},
                         {"attention_dropout", 0.0, "dropout in its attention"},
                         {"text_hidden", 512, "width of the text encoder"},
                         {"text_intermediate", 2048, "width of its feed-forward layers"},
                         {"text_layers", 12, "its layers"},
                         {"text_heads", 8, "its attention heads"},
                         {"text_eps", 1e-5, "epsilon of its norms"},
                         {"text_activation", "quick_gelu", "activation of its feed-forward layers"},
                         {"text_attention_dropout", 0.0, "dropout in its attention"},
                         {"vocab", 49408, "size of the vocabulary"},
                         {"positions", 77, "longest text"},
                         {"text_length", 77, "tokens in a text"},
                         {"largest_ends", false, "texts end at their largest token number, whichever it is"},
                         {"projection", 512, "width in which images and texts are compared"},
                         {"trained_image", 0, "image size of the position table; 0: any"},
                         {"batch", 32, "images in a batch, a text each"},
                         {"channels", 3, "channels of the images"},
                         {"image", 224, "height and width of the images"}},
          .build = build_clip};
}

}  // namespace forerun::zoo
