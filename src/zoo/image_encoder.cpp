// Vision transformers of the transformers library as image classifiers: ViT, and DINOv2 with its layer scales.
//
// Source: ViTForImageClassification and Dinov2ForImageClassification of transformers 5.22, sdpa attention, images of the
// size that the position table is made for. Left out: dropped paths, SwiGLU.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "zoo/decoder_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct ImageEncoderOptions {
  int64_t hidden, intermediate, heads;
  double eps, dropout, attention_dropout;
  bool qkv_bias, dino;
  std::string activation;
};

class ImageEncoderLayer {
 public:
  ImageEncoderLayer(ForwardBuilder& b, const ImageEncoderOptions& o) : b_(b), path_(b.path_of("")), o_(o) {
    if (o.dino) norm1_.emplace(b, "norm1", o.hidden, o.eps);
    query_.emplace(b, "attention.q_proj", o.hidden, o.hidden, o.qkv_bias);
    key_.emplace(b, "attention.k_proj", o.hidden, o.hidden, o.qkv_bias);
    value_.emplace(b, "attention.v_proj", o.hidden, o.hidden, o.qkv_bias);
    out_.emplace(b, "attention.o_proj", o.hidden, o.hidden);
    if (o.dino) {
      scale1_ = b.parameter("layer_scale1.lambda1", {o.hidden});
      norm2_.emplace(b, "norm2", o.hidden, o.eps);
    } else {
      norm1_.emplace(b, "layernorm_before", o.hidden, o.eps);
      norm2_.emplace(b, "layernorm_after", o.hidden, o.eps);
    }
    up_.emplace(b, "mlp.fc1", o.hidden, o.intermediate);
    down_.emplace(b, "mlp.fc2", o.intermediate, o.hidden);
    if (o.dino) scale2_ = b.parameter("layer_scale2.lambda1", {o.hidden});
  }

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    x = b_.add(finished("layer_scale1", scale1_, attend((*norm1_)(x))), x);
    return b_.add(finished("layer_scale2", scale2_, feed_forward((*norm2_)(x))), x);
  }

 private:
  // What follows attention and feed-forward: a scale in DINOv2, dropout in ViT.
  [[nodiscard]] TensorId finished(std::string_view module, std::optional<TensorId> scale, TensorId x) const {
    if (!scale) return Dropout(b_, "dropout", o_.dropout)(x);
    const Scope scope(b_, module);
    return b_.mul(x, *scale);
  }

  [[nodiscard]] TensorId attend(TensorId x) const {
    const Scope scope(b_, "attention");
    const int64_t head = o_.hidden / o_.heads;
    const TensorId query = split_heads(b_, (*query_)(x), head);
    const TensorId key = split_heads(b_, (*key_)(x), head);
    const TensorId value = split_heads(b_, (*value_)(x), head);
    const AttentionOptions options = {
        .mask = {}, .dropout = o_.attention_dropout, .scale = std::pow(static_cast<double>(head), -0.5)};
    return (*out_)(merge_heads(b_, b_.attention(query, key, value, options)));
  }

  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    const Scope scope(b_, "mlp");
    x = (*up_)(x);
    {
      const Scope activation(b_, "activation_fn");
      x = activate(b_, o_.activation, x);
    }
    return (*down_)(x);
  }

  ForwardBuilder& b_;
  std::string path_;
  ImageEncoderOptions o_;
  std::optional<Linear> query_, key_, value_, out_, up_, down_;
  std::optional<LayerNorm> norm1_, norm2_;
  std::optional<TensorId> scale1_, scale2_;
};

bool image_encoder_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "image", "channels", "classes", "patch", "hidden", "intermediate", "heads"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !within(b, c, {"trained_image"}, 0) ||
      !heads_divide(b, c.integer("heads"), c.integer("hidden")) || !is_activation(b, c.text("activation")) ||
      !is_dropout(b, c.real("dropout")) || !is_dropout(b, c.real("attention_dropout"))) {
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

void build_image_encoder(ForwardBuilder& b, const Configuration& c) {
  if (!image_encoder_makes_sense(b, c)) return;
  const bool dino = c.flag("dino");
  const ImageEncoderOptions o = {.hidden = c.integer("hidden"),
                                 .intermediate = c.integer("intermediate"),
                                 .heads = c.integer("heads"),
                                 .eps = c.real("eps"),
                                 .dropout = c.real("dropout"),
                                 .attention_dropout = c.real("attention_dropout"),
                                 .qkv_bias = c.flag("qkv_bias"),
                                 .dino = dino,
                                 .activation = c.text("activation")};
  const std::string prefix = dino ? "dinov2" : "vit";
  const int64_t batch = c.integer("batch");
  const int64_t patch = c.integer("patch");
  const int64_t side = c.integer("image") / patch;
  const TensorId image = b.input("x", {batch, c.integer("channels"), c.integer("image"), c.integer("image")});
  std::optional<Scope> embeddings(std::in_place, b, prefix + ".embeddings");
  const TensorId class_token = b.parameter("cls_token", {1, 1, o.hidden});
  if (c.flag("mask_token")) b.parameter("mask_token", {1, o.hidden});
  const TensorId positions = b.parameter("position_embeddings", {1, side * side + 1, o.hidden});
  const Conv2d projection(b, "patch_embeddings.projection", c.integer("channels"), o.hidden,
                          {.kernel = patch, .stride = patch});
  embeddings.reset();
  std::vector<ImageEncoderLayer> layers;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("{}.{}.{}", prefix, dino ? "encoder.layer" : "layers", i));
    layers.emplace_back(b, o);
  }
  const LayerNorm norm(b, prefix + ".layernorm", o.hidden, o.eps);
  const Linear classifier(b, "classifier", dino ? 2 * o.hidden : o.hidden, c.integer("classes"));

  embeddings.emplace(b, prefix + ".embeddings");
  TensorId x = b.transpose(b.flatten(projection(image), 2), 1, 2);
  x = b.cat({b.expand(class_token, {batch, -1, -1}), x}, 1);
  x = Dropout(b, "dropout", o.dropout)(b.add(x, positions));
  embeddings.reset();
  for (const ImageEncoderLayer& layer : layers) x = layer(x);
  x = norm(x);
  if (!dino) return b.result(classifier(b.select(x, 1, 0)));
  b.select(x, 1, 0);  // the pooled output, of no use here
  const TensorId first = b.select(x, 1, 0);
  const TensorId patches = b.mean(b.slice(x, 1, 1, kToEnd), {1}, false);
  b.result(classifier(b.cat({first, patches}, 1)));
}

}  // namespace

Family image_encoder_family() {
  return {
      .name = "image_encoder",
      .description = "vision transformers as classifiers (transformers)",
      .input = InputKind::image,
      .parameters = with_image_parameters({{"patch", 16, "height and width of a patch"},
                                           {"layers", 12, "encoder layers"},
                                           {"heads", 12, "attention heads"},
                                           {"hidden", 768, "width of the model"},
                                           {"intermediate", 3072, "width of the feed-forward layers"},
                                           {"eps", 1e-12, "epsilon of the norms"},
                                           {"activation", "gelu", "activation of the feed-forward layers"},
                                           {"qkv_bias", true, "queries, keys and values have biases"},
                                           {"dropout", 0.0, "dropout outside attention"},
                                           {"attention_dropout", 0.0, "dropout in attention"},
                                           {"dino", false, "DINOv2: layer scales, and patches in the classifier too"},
                                           {"mask_token", false, "a parameter that pre-training alone uses"},
                                           {"trained_image", 0, "image size of the position table; 0: any"}}),
      .build = build_image_encoder};
}

}  // namespace forerun::zoo
