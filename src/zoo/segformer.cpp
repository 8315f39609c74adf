// SegFormer's encoder (Mix Transformer) as an image classifier: four stages of overlapping patches, attention over keys and
// values of fewer pixels, a depthwise convolution within the feed-forward layers.
//
// Source: SegformerForImageClassification of transformers 5.22, sdpa attention. Paths are dropped sample by sample: what is
// dropped is computed all the same. Left out: the decoder for segmentation.
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

struct SegformerBlockOptions {
  int64_t hidden, heads, intermediate, reduction;
  double dropout, attention_dropout, drop_path;
  std::string activation;
};

// Pixels in rows and back: [batch, height * width, channels] <-> [batch, channels, height, width].
TensorId as_image(ForwardBuilder& b, TensorId x, int64_t height, int64_t width) {
  return b.reshape(b.transpose(x, 1, 2), {b.extent(x, 0), b.extent(x, 2), height, width});
}
TensorId as_rows(ForwardBuilder& b, TensorId x) { return b.transpose(b.flatten(x, 2), 1, 2); }

class SegformerAttention {
 public:
  SegformerAttention(ForwardBuilder& b, const SegformerBlockOptions& o)
      : b_(b),
        path_(b.path_of("attention")),
        o_(o),
        query_(b, "attention.q_proj", o.hidden, o.hidden),
        key_(b, "attention.k_proj", o.hidden, o.hidden),
        value_(b, "attention.v_proj", o.hidden, o.hidden),
        out_(b, "attention.o_proj", o.hidden, o.hidden) {
    if (o.reduction == 1) return;
    const Conv2dOptions window = {.kernel = o.reduction, .stride = o.reduction};
    reduce_.emplace(b, "attention.sequence_reduction.sequence_reduction", o.hidden, o.hidden, window);
    reduced_norm_.emplace(b, "attention.sequence_reduction.layer_norm", o.hidden);
  }

  TensorId operator()(TensorId x, int64_t height, int64_t width) const {
    const Scope scope(b_, path_, Scope::absolute);
    const int64_t head = o_.hidden / o_.heads;
    const TensorId query = split_heads(b_, query_(x), head);
    const TensorId source = reduce_ ? reduced(x, height, width) : x;
    const TensorId key = split_heads(b_, key_(source), head);
    const TensorId value = split_heads(b_, value_(source), head);
    const AttentionOptions options = {
        .mask = {}, .dropout = o_.attention_dropout, .scale = std::pow(static_cast<double>(head), -0.5)};
    return out_(merge_heads(b_, b_.attention(query, key, value, options)));
  }

 private:
  [[nodiscard]] TensorId reduced(TensorId x, int64_t height, int64_t width) const {
    const Scope scope(b_, "sequence_reduction");
    const TensorId fewer = (*reduce_)(as_image(b_, x, height, width));
    const TensorId flat = b_.reshape(fewer, {b_.extent(x, 0), o_.hidden, -1});
    return (*reduced_norm_)(b_.transpose(flat, 1, 2));
  }

  ForwardBuilder& b_;
  std::string path_;
  SegformerBlockOptions o_;
  Linear query_, key_, value_, out_;
  std::optional<Conv2d> reduce_;
  std::optional<LayerNorm> reduced_norm_;
};

class SegformerBlock {
 public:
  SegformerBlock(ForwardBuilder& b, const SegformerBlockOptions& o)
      : b_(b),
        path_(b.path_of("")),
        o_(o),
        norm1_(b, "layernorm_before", o.hidden),
        attention_(b, o),
        norm2_(b, "layernorm_after", o.hidden),
        up_(b, "mlp.fc1", o.hidden, o.intermediate),
        mix_(b, "mlp.dwconv.dwconv", o.intermediate, o.intermediate,
             {.kernel = 3, .padding = 1, .groups = o.intermediate}),
        down_(b, "mlp.fc2", o.intermediate, o.hidden) {}

  TensorId operator()(TensorId x, int64_t height, int64_t width) const {
    const Scope scope(b_, path_, Scope::absolute);
    TensorId y = attention_(norm1_(x), height, width);
    x = b_.add(path_dropped(b_, "drop_path", Dropout(b_, "hidden_dropout", o_.dropout)(y), o_.drop_path), x);
    y = feed_forward(norm2_(x), height, width);
    return b_.add(path_dropped(b_, "drop_path", y, o_.drop_path), x);
  }

 private:
  [[nodiscard]] TensorId feed_forward(TensorId x, int64_t height, int64_t width) const {
    const Scope scope(b_, "mlp");
    x = up_(x);
    {
      const Scope mix(b_, "dwconv");
      x = as_rows(b_, mix_(as_image(b_, x, height, width)));
    }
    {
      const Scope activation(b_, "activation_fn");
      x = activate(b_, o_.activation, x);
    }
    x = down_(b_.dropout(x, o_.dropout));
    return b_.dropout(x, o_.dropout);
  }

  ForwardBuilder& b_;
  std::string path_;
  SegformerBlockOptions o_;
  LayerNorm norm1_;
  SegformerAttention attention_;
  LayerNorm norm2_;
  Linear up_;
  Conv2d mix_;
  Linear down_;
};

class SegformerStage {
 public:
  // `first` and `blocks`: the number of its first block and of all blocks; later ones are dropped more often.
  SegformerStage(ForwardBuilder& b, const Configuration& c, size_t stage, int64_t first, int64_t blocks)
      : b_(b), path_(b.path_of("")) {
    const auto at = [&](const char* name) { return c.list(name)[stage]; };
    const int64_t channels = stage == 0 ? c.integer("channels") : c.list("hidden")[stage - 1];
    const Conv2dOptions patches = {.kernel = at("patch"), .stride = at("stride"), .padding = at("patch") / 2};
    project_.emplace(b, "patch_embeddings.proj", channels, at("hidden"), patches);
    first_norm_.emplace(b, "patch_embeddings.layer_norm", at("hidden"));
    const double step = blocks > 1 ? c.real("drop_path") / static_cast<double>(blocks - 1) : 0;
    for (int64_t i = 0; i < at("depths"); ++i) {
      const Scope scope(b, fmt::format("blocks.{}", i));
      blocks_.emplace_back(b, SegformerBlockOptions{.hidden = at("hidden"),
                                                    .heads = at("heads"),
                                                    .intermediate = at("hidden") * at("ratio"),
                                                    .reduction = at("reduction"),
                                                    .dropout = c.real("dropout"),
                                                    .attention_dropout = c.real("attention_dropout"),
                                                    .drop_path = step * static_cast<double>(first + i),
                                                    .activation = c.text("activation")});
    }
    last_norm_.emplace(b, "layer_norm", at("hidden"));
  }

  TensorId operator()(TensorId image) const {
    const Scope scope(b_, path_, Scope::absolute);
    int64_t height = 1;
    int64_t width = 1;
    TensorId x;
    {
      const Scope patches(b_, "patch_embeddings");
      image = (*project_)(image);
      height = b_.extent(image, 2);
      width = b_.extent(image, 3);
      x = (*first_norm_)(as_rows(b_, image));
    }
    for (const SegformerBlock& block : blocks_) x = block(x, height, width);
    x = b_.reshape((*last_norm_)(x), {b_.extent(x, 0), height, width, -1});
    return b_.contiguous(b_.permute(x, {0, 3, 1, 2}));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  std::optional<Conv2d> project_;
  std::optional<LayerNorm> first_norm_, last_norm_;
  std::vector<SegformerBlock> blocks_;
};

bool segformer_makes_sense(ForwardBuilder& b, const Configuration& c) {
  if (!within(b, c, {"batch", "image", "channels", "classes"}) || !is_activation(b, c.text("activation")) ||
      !is_dropout(b, c.real("dropout")) || !is_dropout(b, c.real("attention_dropout")) ||
      !is_dropout(b, c.real("drop_path"))) {
    return false;
  }
  const size_t stages = c.list("depths").size();
  for (const char* name : {"hidden", "heads", "patch", "stride", "reduction", "ratio"}) {
    if (c.list(name).size() == stages) continue;
    b.fail(fmt::format("{} names {} stages, depths {}", name, c.list(name).size(), stages), "name as many");
    return false;
  }
  for (size_t i = 0; i < stages; ++i) {
    if (!heads_divide(b, c.list("heads")[i], c.list("hidden")[i])) return false;
  }
  return true;
}

void build_segformer(ForwardBuilder& b, const Configuration& c) {
  if (!segformer_makes_sense(b, c)) return;
  int64_t blocks = 0;
  for (const int64_t depth : c.list("depths")) blocks += depth;
  TensorId x = image_input(b, c);
  std::vector<SegformerStage> stages;
  int64_t first = 0;
  for (size_t i = 0; i < c.list("depths").size(); ++i) {
    const Scope scope(b, fmt::format("segformer.stages.{}", i));
    stages.emplace_back(b, c, i, first, blocks);
    first += c.list("depths")[i];
  }
  const int64_t width = c.list("hidden").back();
  const Linear classifier(b, "classifier", width, c.integer("classes"));
  for (const SegformerStage& stage : stages) x = stage(x);
  x = b.reshape(b.permute(x, {0, 2, 3, 1}), {c.integer("batch"), -1, width});
  b.result(classifier(b.mean(x, {1}, false)));
}

}  // namespace

Family segformer_family() {
  using List = std::vector<int64_t>;
  return {
      .name = "segformer",
      .description = "SegFormer's encoder as a classifier (transformers)",
      .input = InputKind::image,
      .parameters = with_image_parameters({{"depths", List{2, 2, 2, 2}, "blocks in each stage"},
                                           {"hidden", List{32, 64, 160, 256}, "widths of the stages"},
                                           {"heads", List{1, 2, 5, 8}, "attention heads of the stages"},
                                           {"patch", List{7, 3, 3, 3}, "height and width of the stages' patches"},
                                           {"stride", List{4, 2, 2, 2}, "pixels from patch to patch"},
                                           {"reduction", List{8, 4, 2, 1}, "keys and values are of windows this large"},
                                           {"ratio", List{4, 4, 4, 4}, "feed-forward layers are wider by this"},
                                           {"activation", "gelu", "activation of the feed-forward layers"},
                                           {"dropout", 0.0, "dropout outside attention"},
                                           {"attention_dropout", 0.0, "dropout in attention"},
                                           {"drop_path", 0.1, "how often the last block is left out"}}),
      .build = build_segformer};
}

}  // namespace forerun::zoo
