// Vision Transformer as torchvision builds it: patches by convolution, a class token, learned positions, pre-norm
// encoder blocks, and a linear head on the class token.
//
// Source: torchvision.models.VisionTransformer with its defaults (no dropout, no representation layer, plain stem).
#include <fmt/format.h>

#include <string>

#include "zoo/attention_layers.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

constexpr double kVitEps = 1e-6;

struct VitSizes {
  int64_t dim;
  int64_t heads;
  int64_t mlp;
};

class EncoderBlock {
 public:
  EncoderBlock(ForwardBuilder& b, const VitSizes& s)
      : b_(b),
        path_(b.path_of("")),
        norm1_(b, "ln_1", s.dim, kVitEps),
        attention_(b, "self_attention", s.dim, s.heads, {.dropout = 0, .batch_first = true}),
        norm2_(b, "ln_2", s.dim, kVitEps),
        mlp_(b, s.dim, s.mlp) {}

  TensorId operator()(TensorId input) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId x = b_.add(attention_.self(norm1_(input)), input);
    return b_.add(x, mlp_(norm2_(x)));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  LayerNorm norm1_;
  MultiheadAttention attention_;
  LayerNorm norm2_;
  Mlp mlp_;
};

void build_vit(ForwardBuilder& b, const Configuration& c) {
  const VitSizes sizes = {c.integer("dim"), c.integer("heads"), c.integer("mlp")};
  if (!within(b, c, {"batch", "channels", "image", "classes", "patch", "heads", "dim", "mlp"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !heads_divide(b, sizes.heads, sizes.dim)) {
    return;
  }
  const int64_t batch = c.integer("batch");
  const int64_t patch = c.integer("patch");
  if (c.integer("image") % patch != 0) {
    b.fail(fmt::format("patches of {} do not tile an image of {}", patch, c.integer("image")),
           "choose an image size that is a multiple of the patch size");
    return;
  }
  const int64_t side = c.integer("image") / patch;
  const TensorId image = image_input(b, c);
  const TensorId class_token = b.parameter("class_token", {1, 1, sizes.dim});
  const Conv2d projection(b, "conv_proj", c.integer("channels"), sizes.dim, {.kernel = patch, .stride = patch});
  std::vector<EncoderBlock> blocks;
  const std::string encoder = b.path_of("encoder");
  TensorId positions;
  std::vector<LayerNorm> norm;
  {
    const Scope scope(b, encoder, Scope::absolute);
    positions = b.parameter("pos_embedding", {1, side * side + 1, sizes.dim});
    for (int64_t i = 0; i < c.integer("layers"); ++i) {
      const Scope layer(b, fmt::format("layers.encoder_layer_{}", i));
      blocks.emplace_back(b, sizes);
    }
    norm.emplace_back(b, "ln", sizes.dim, kVitEps);
  }
  const Linear head(b, "heads.head", sizes.dim, c.integer("classes"));

  TensorId x = b.reshape(projection(image), {batch, sizes.dim, side * side});
  x = b.permute(x, {0, 2, 1});
  x = b.cat({b.expand(class_token, {batch, -1, -1}), x}, 1);
  {
    const Scope scope(b, encoder, Scope::absolute);
    x = b.add(x, positions);
    for (const EncoderBlock& block : blocks) x = block(x);
    x = norm.front()(x);
  }
  b.result(head(b.select(x, 1, 0)));
}

NamedModel model(const std::string& name, int64_t patch, int64_t layers, int64_t heads, int64_t dim, int64_t mlp) {
  return {name, "vit", {{"patch", patch}, {"layers", layers}, {"heads", heads}, {"dim", dim}, {"mlp", mlp}}};
}

}  // namespace

Family vit_family() {
  return {.name = "vit",
          .description = "Vision Transformer (torchvision)",
          .input = InputKind::image,
          .parameters = with_image_parameters({{"patch", 16, "height and width of a patch"},
                                               {"layers", 12, "encoder blocks"},
                                               {"heads", 12, "attention heads"},
                                               {"dim", 768, "width of the model"},
                                               {"mlp", 3072, "width of the feed-forward layers"}}),
          .build = build_vit};
}

std::vector<NamedModel> vit_models() {
  return {model("vit_b_16", 16, 12, 12, 768, 3072), model("vit_b_32", 32, 12, 12, 768, 3072),
          model("vit_l_16", 16, 24, 16, 1024, 4096), model("vit_l_32", 32, 24, 16, 1024, 4096),
          model("vit_h_14", 14, 32, 16, 1280, 5120)};
}

}  // namespace forerun::zoo
