// DiT, diffusion transformers (Peebles and Xie 2023): blocks whose norms are shifted, scaled and gated by what is known of the
// step and the class (adaLN-Zero), on patches of a latent image.
//
// Source: the authors' description and the form in which its blocks are widely built, of timm's patches, attention and
// feed-forward layers; labels are dropped at random for guidance. The loss is the mean squared error of the noise; where
// variances are learned too, they take no part in it (the paper adds a bound of their own). 675,129,632 parameters for
// DiT-XL/2 with its fixed table of positions.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "zoo/attention_layers.h"
#include "zoo/diffusion_parts.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

constexpr int64_t kWaves = 128;  // of each kind

TensorId silu(ForwardBuilder& b, std::string_view module, TensorId x) {
  const Scope scope(b, module);
  return b.unary("aten.silu.default", x);
}

// x * (1 + scale) + shift, with one of both for each sample.
TensorId modulated(ForwardBuilder& b, TensorId x, TensorId shift, TensorId scale) {
  const TensorId factor = b.add_scalar(b.unsqueeze(scale, 1), 1);
  x = b.mul(x, factor);
  return b.add(x, b.unsqueeze(shift, 1));
}

// A layer norm without weights of its own.
TensorId normed(ForwardBuilder& b, std::string_view module, TensorId x) {
  const Scope scope(b, module);
  return b.layer_norm(x, std::nullopt, std::nullopt, {b.extent(x, -1)}, 1e-6);
}

// Shifts, scales and gates: `parts` vectors for each sample.
class Modulation {
 public:
  Modulation(ForwardBuilder& b, int64_t width, int64_t parts)
      : b_(b),
        path_(b.path_of("adaLN_modulation")),
        parts_(parts),
        linear_(b, "adaLN_modulation.1", width, parts * width) {}

  [[nodiscard]] std::vector<TensorId> operator()(TensorId condition) const {
    TensorId x = condition;
    {
      const Scope scope(b_, path_, Scope::absolute);
      x = silu(b_, "0", x);
    }
    return b_.chunk(linear_(x), parts_, 1);
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t parts_;
  Linear linear_;
};

class DitBlock {
 public:
  DitBlock(ForwardBuilder& b, int64_t width, int64_t heads, int64_t inner)
      : b_(b),
        path_(b.path_of("")),
        width_(width),
        heads_(heads),
        qkv_(b, "attn.qkv", width, 3 * width),
        projection_(b, "attn.proj", width, width),
        up_(b, "mlp.fc1", width, inner),
        down_(b, "mlp.fc2", inner, width),
        modulation_(b, width, 6) {}

  TensorId operator()(TensorId x, TensorId condition) const {
    const Scope scope(b_, path_, Scope::absolute);
    const std::vector<TensorId> m = modulation_(condition);
    if (m.size() != 6) return x;  // after an error
    TensorId y = attend(modulated(b_, normed(b_, "norm1", x), m[0], m[1]));
    x = b_.add(x, b_.mul(b_.unsqueeze(m[2], 1), y));
    y = feed_forward(modulated(b_, normed(b_, "norm2", x), m[3], m[4]));
    return b_.add(x, b_.mul(b_.unsqueeze(m[5], 1), y));
  }

 private:
  [[nodiscard]] TensorId attend(TensorId x) const {
    const Scope scope(b_, "attn");
    const int64_t batch = b_.extent(x, 0);
    const int64_t length = b_.extent(x, 1);
    const TensorId packed = b_.reshape(qkv_(x), {batch, length, 3, heads_, width_ / heads_});
    const std::vector<TensorId> qkv = b_.unbind(b_.permute(packed, {2, 0, 3, 1, 4}), 0);
    if (qkv.size() != 3) return x;  // after an error
    x = b_.attention(qkv[0], qkv[1], qkv[2]);
    return projection_(b_.reshape(b_.transpose(x, 1, 2), {batch, length, width_}));
  }

  [[nodiscard]] TensorId feed_forward(TensorId x) const {
    const Scope scope(b_, "mlp");
    x = up_(x);
    {
      const Scope activation(b_, "act");
      x = b_.gelu(x, true);
    }
    return down_(x);
  }

  ForwardBuilder& b_;
  std::string path_;
  int64_t width_, heads_;
  Linear qkv_, projection_, up_, down_;
  Modulation modulation_;
};

bool dit_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "image", "channels", "classes", "patch", "hidden", "intermediate", "heads"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !heads_divide(b, c.integer("heads"), c.integer("hidden")) ||
      !is_dropout(b, c.real("class_dropout"))) {
    return false;
  }
  if (c.integer("image") % c.integer("patch") == 0) return true;
  b.fail(fmt::format("patches of {} do not divide images of {}", c.integer("patch"), c.integer("image")),
         "choose an image size that is a multiple of the patch");
  return false;
}

// Labels, some of them replaced by the one that stands for none.
TensorId with_labels_dropped(ForwardBuilder& b, TensorId labels, double p) {
  if (p == 0) return labels;
  const Shape shape = b.shape(labels);
  const TensorId drawn = b.create("aten.rand.default", shape, DType::float32);
  const TensorId dropped = b.opaque("aten.lt.Scalar", {drawn}, {{shape, DType::boolean}}, {{"other", p}}).front();
  const TensorId none = b.create("aten.scalar_tensor.default", {}, DType::int64);
  return b.where(dropped, none, labels);
}

// [batch, side * side, patch * patch * channels] -> [batch, channels, image, image].
TensorId image_of_patches(ForwardBuilder& b, TensorId x, int64_t side, int64_t patch) {
  const int64_t batch = b.extent(x, 0);
  const int64_t channels = b.extent(x, -1) / (patch * patch);
  x = b.permute(b.reshape(x, {batch, side, side, patch, patch, channels}), {0, 5, 1, 3, 2, 4});
  return b.reshape(x, {batch, channels, side * patch, side * patch});
}

void build_dit(ForwardBuilder& b, const Configuration& c) {
  if (!dit_makes_sense(b, c)) return;
  const int64_t batch = c.integer("batch");
  const int64_t width = c.integer("hidden");
  const int64_t patch = c.integer("patch");
  const int64_t channels = c.integer("channels");
  const int64_t side = c.integer("image") / patch;
  const bool sigma = c.flag("learn_sigma");
  const TensorId image = image_input(b, c);
  const TensorId steps = timestep_input(b, batch);
  const TensorId labels = b.input("labels", {batch}, DType::int64);

  const TensorId positions = b.frozen_parameter("pos_embed", {1, side * side, width});
  const Conv2d patches(b, "x_embedder.proj", channels, width, {.kernel = patch, .stride = patch});
  const Linear step1(b, "t_embedder.mlp.0", 2 * kWaves, width);
  const Linear step2(b, "t_embedder.mlp.2", width, width);
  const bool drops = c.real("class_dropout") > 0;
  const Embedding classes(b, "y_embedder.embedding_table", c.integer("classes") + (drops ? 1 : 0), width);
  std::vector<DitBlock> blocks;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope scope(b, fmt::format("blocks.{}", i));
    blocks.emplace_back(b, width, c.integer("heads"), c.integer("intermediate"));
  }
  std::optional<Scope> final_layer(std::in_place, b, "final_layer");
  const Linear out(b, "linear", width, patch * patch * channels * (sigma ? 2 : 1));
  const Modulation modulation(b, width, 2);
  final_layer.reset();

  TensorId x = b.add(b.transpose(b.flatten(patches(image), 2), 1, 2), positions);
  const TensorId waves = timestep_waves(b, steps, {.count = kWaves, .cosines_first = true});
  const TensorId step = step2(silu(b, "t_embedder.mlp.1", step1(b.type_as(waves, image))));
  const TensorId condition = b.add(step, classes(with_labels_dropped(b, labels, c.real("class_dropout"))));
  for (const DitBlock& block : blocks) x = block(x, condition);
  final_layer.emplace(b, "final_layer");
  const std::vector<TensorId> m = modulation(condition);
  if (m.size() != 2) return;  // after an error
  x = out(modulated(b, normed(b, "norm_final", x), m[0], m[1]));
  final_layer.reset();
  x = image_of_patches(b, x, side, patch);
  squared_error_result(b, sigma ? b.chunk(x, 2, 1).front() : x, "noise");
}

}  // namespace

Family dit_family() {
  return {.name = "dit",
          .description = "DiT: diffusion transformers, mean squared error of the noise",
          .input = InputKind::image,
          .parameters = with_image_parameters({{"patch", 2, "height and width of a patch"},
                                               {"layers", 28, "blocks"},
                                               {"heads", 16, "attention heads"},
                                               {"hidden", 1152, "width of the model"},
                                               {"intermediate", 4608, "width of the feed-forward layers"},
                                               {"class_dropout", 0.1, "share of labels that are dropped"},
                                               {"learn_sigma", true, "variances are predicted beside the noise"}},
                                              32, 1000),
          .build = build_dit};
}

}  // namespace forerun::zoo
