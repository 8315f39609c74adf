// ViT-22B: a Vision Transformer whose blocks run attention and feed-forward side by side.
//
// Source: Dehghani et al., "Scaling Vision Transformers to 22 Billion Parameters" (2023): one norm before both parts, queries and keys
// normed head by head, no biases in the projections of attention, norms without bias and centring, biases in the feed-forward
// layers. As PyTorch would run it; the paper's program is JAX. Projections are products of their own, where the paper joins those of
// attention and feed-forward; classes are told from the mean of the patches, where its pretraining pools them by attention.
#include <fmt/format.h>

#include <string>

#include "zoo/attention_layers.h"
#include "zoo/families.h"

namespace forerun::zoo {
namespace {

using Scope = ForwardBuilder::Scope;

struct ParallelSizes {
  int64_t dim, heads, mlp;
};

class ParallelBlock {
 public:
  ParallelBlock(ForwardBuilder& b, const ParallelSizes& s)
      : b_(b),
        path_(b.path_of("")),
        head_(s.dim / s.heads),
        norm_(b, "norm", s.dim),
        query_(b, "attention.query", s.dim, s.dim, false),
        key_(b, "attention.key", s.dim, s.dim, false),
        value_(b, "attention.value", s.dim, s.dim, false),
        query_norm_(b, "attention.query_norm", head_),
        key_norm_(b, "attention.key_norm", head_),
        out_(b, "attention.out", s.dim, s.dim, false),
        inner_(b, "mlp.inner", s.dim, s.mlp),
        outer_(b, "mlp.outer", s.mlp, s.dim) {}

  TensorId operator()(TensorId x) const {
    const Scope scope(b_, path_, Scope::absolute);
    const TensorId y = norm_(x);
    const TensorId query = query_norm_(split_heads(b_, query_(y), head_));
    const TensorId key = key_norm_(split_heads(b_, key_(y), head_));
    const TensorId value = split_heads(b_, value_(y), head_);
    const TensorId attended = out_(merge_heads(b_, b_.attention(query, key, value, {})));
    TensorId wide = inner_(y);
    {
      const Scope activation(b_, "mlp.act");
      wide = b_.gelu(wide);
    }
    return b_.add(x, b_.add(attended, outer_(wide)));
  }

 private:
  ForwardBuilder& b_;
  std::string path_;
  int64_t head_;
  RmsNorm norm_;
  Linear query_, key_, value_;
  RmsNorm query_norm_, key_norm_;
  Linear out_, inner_, outer_;
};

void build_parallel_vit(ForwardBuilder& b, const Configuration& c) {
  const ParallelSizes sizes = {c.integer("dim"), c.integer("heads"), c.integer("mlp")};
  if (!within(b, c, {"batch", "channels", "image", "classes", "patch", "heads", "dim", "mlp"}) ||
      !within(b, c, {"layers"}, 1, kMostLayers) || !heads_divide(b, sizes.heads, sizes.dim)) {
    return;
  }
  const int64_t patch = c.integer("patch");
  if (c.integer("image") % patch != 0) {
    b.fail(fmt::format("patches of {} do not tile an image of {}", patch, c.integer("image")),
           "choose an image size that is a multiple of the patch size");
    return;
  }
  const int64_t patches = (c.integer("image") / patch) * (c.integer("image") / patch);
  const TensorId image = image_input(b, c);
  const Conv2d projection(b, "patches", c.integer("channels"), sizes.dim, {.kernel = patch, .stride = patch});
  const TensorId positions = b.parameter("positions", {1, patches, sizes.dim});
  std::vector<ParallelBlock> blocks;
  for (int64_t i = 0; i < c.integer("layers"); ++i) {
    const Scope layer(b, fmt::format("blocks.{}", i));
    blocks.emplace_back(b, sizes);
  }
  const RmsNorm norm(b, "norm", sizes.dim);
  const Linear head(b, "head", sizes.dim, c.integer("classes"));

  TensorId x = b.permute(b.reshape(projection(image), {c.integer("batch"), sizes.dim, patches}), {0, 2, 1});
  x = b.add(x, positions);
  for (const ParallelBlock& block : blocks) x = block(x);
  b.result(head(b.mean(norm(x), {1}, false)));
}

}  // namespace

Family vit_parallel_family() {
  return {.name = "vit_parallel",
          .description = "Vision Transformer with attention and feed-forward side by side (ViT-22B)",
          .input = InputKind::image,
          .parameters = with_image_parameters({{"patch", 14, "height and width of a patch"},
                                               {"layers", 48, "encoder blocks"},
                                               {"heads", 48, "attention heads"},
                                               {"dim", 6144, "width of the model"},
                                               {"mlp", 24576, "width of the feed-forward layers"}}),
          .build = build_parallel_vit};
}

std::vector<NamedModel> vit_parallel_models() { return {{"vit_22b", "vit_parallel", {}}}; }

}  // namespace forerun::zoo
